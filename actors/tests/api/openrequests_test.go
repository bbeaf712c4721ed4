package api

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// Open returns each request of the process once, of each recipe and each sender.
func TestOpen(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config)
		expectOpen(b, locks)
		me := actors.WithOwner("me")
		grants := []*actors.Grant{
			locktest.Lock(b, locks.Mutex(b.LockPath), me),
			locktest.Lock(b, locks.RWMutex(b.LockPath+"/rw").Read()),
			locktest.Lock(b, locks.Semaphore(b.LockPath+"/s", 3), actors.Permits(2)),
			locktest.Lock(b, locks.MultiLock(locks.Mutex(b.LockPath+"/m1"), locks.Mutex(b.LockPath+"/m2"))),
			locktest.Lock(b, locks.Mutex(b.LockPath+"/local", actors.LocalQueue(actors.LocalQueueConfig{})), me),
		}
		waiting := locks.RWMutex(b.LockPath + "/rw").Write().Acquire(locktest.Within(b))
		all[0].Send(locktest.PID(b, locks.Mutex(b.LockPath)), &messages.Acquire{RequestId: 7, Owner: "actor"})
		expectOpen(b, locks,
			"mutex exclusive held me",
			"mutex exclusive waiting actor "+all[0].Self.Address+"/"+all[0].Self.Id,
			"mutex exclusive held me",
			"read-write read held",
			"read-write write waiting",
			"semaphore permit held",
			"multi-lock exclusive held")
		waiting.Cancel()
		all[0].Send(locktest.PID(b, locks.Mutex(b.LockPath)), &messages.Cancel{RequestId: 7, Owner: "actor"})
		all[0].Refused(7, messages.Reason_CANCELLED)
		for _, g := range grants {
			locktest.Unlock(b, g)
		}
		expectOpen(b, locks)
		locktest.Must(b, locks.Close())
		expectOpen(b, locks)
	})
}

func expectOpen(b *locktest.Fixture, locks *actors.Locks, want ...string) {
	b.Helper()
	var got []string
	for _, r := range locks.OpenRequests() {
		line := fmt.Sprintf("%s %s %s", r.Recipe, r.Kind, r.State)
		for _, owner := range []string{r.Owner, r.Actor} {
			if owner != "" {
				line += " " + owner
			}
		}
		got = append(got, line)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("open are\n%q, want\n%q", got, want)
	}
}

// Since is the time of the request and, from the grant on, of the grant.
func TestOpenSince(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		start := time.Now()
		holder := locktest.Lock(v, mu)
		<-time.After(time.Second)
		waiter := mu.Acquire(locktest.Within(v), actors.WithOwner("me"))
		<-time.After(time.Second)
		expectSince(v, locks, start, actors.RequestHeld, time.Duration(0), actors.RequestWaiting, time.Second)
		locktest.Unlock(v, holder)
		g := locktest.Result(v, waiter)
		expectSince(v, locks, start, actors.RequestHeld, 2*time.Second)
		v.Expire(locks.Session().ID)
		locktest.Closes(v, g.Done(), "the lost grant")
		expectSince(v, locks, start, actors.RequestLost, 2*time.Second)
		g.Release()
		synctest.Wait()
		if open := locks.OpenRequests(); len(open) > 0 {
			v.Errorf("open is %v", open)
		}
	})
}

func expectSince(v *locktest.Virtual, locks *actors.Locks, start time.Time, want ...any) {
	v.Helper()
	var got []any
	for _, r := range locks.OpenRequests() {
		got = append(got, r.State, r.Since.Sub(start).Truncate(100*time.Millisecond))
	}
	if !slices.Equal(got, want) {
		v.Errorf("got %v, want %v", got, want)
	}
}

// HeldHere reports at once whether the handle's mode is held.
func TestHeldHere(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, other := b.Locks(), b.Locks()
		rw := locks.RWMutex(b.LockPath)
		expect := func(when string, read, write, me bool) {
			b.Helper()
			if r, w, m := rw.Read().HeldHere(), rw.Write().HeldHere(), rw.Write().HeldHere("you", "me"); r != read || w != write || m != me {
				b.Errorf("%s: read %v, write %v, by me %v", when, r, w, m)
			}
		}
		expect("unused", false, false, false)
		g := locktest.Lock(b, other.RWMutex(b.LockPath).Write())
		waiting := rw.Write().Acquire(locktest.Within(b), actors.WithOwner("me"))
		expect("held elsewhere", false, false, false)
		locktest.Unlock(b, g)
		g = locktest.Result(b, waiting)
		expect("write", false, true, true)
		reading := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		expect("both", true, true, true)
		g.Release()
		expect("downgraded", true, false, false)
		reading.Release()
		expect("released", false, false, false)
		multi := locktest.Lock(b, locks.MultiLock(rw.Write()), actors.WithOwner("me"))
		expect("as a member", false, true, true)
		b.ExpireSession(locks)
		locktest.Closes(b, multi.Done(), "the lost grant")
		expect("lost", false, false, false)
		multi.Release()
		local := locks.Mutex(b.LockPath+"/local", actors.LocalQueue(actors.LocalQueueConfig{}))
		lg := locktest.Lock(b, local)
		if !local.HeldHere() {
			b.Error("a local queue does not hold")
		}
		lg.Release()
		if local.HeldHere() {
			b.Error("a local queue holds without an owner")
		}
		locktest.Must(b, locks.Close())
		locktest.Must(b, other.Close())
		expect("closed", false, false, false)
	})
}

// Open returns, without a data race, while requests come and go, actors end, and Locks is closed.
func TestOpenMeanwhile(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks(locktest.IdleTimeout(10 * time.Millisecond))
		b.Cleanups = append(b.Cleanups, func() { // ZooKeeper keeps a container in which no contender ever was
			conn := b.Client(b)
			for _, directory := range b.LockNodes() {
				conn.Delete(b.LockPath+"/"+directory, -1)
			}
		})
		var users sync.WaitGroup
		for i := range 4 {
			users.Go(func() {
				for n := 0; ; n++ {
					g, err := locks.Mutex(fmt.Sprintf("%s/%d", b.LockPath, (n+i)%20)).Lock(locktest.Within(b))
					if errors.Is(err, actors.ErrClosed) {
						return
					}
					if err != nil {
						b.Error(err)
						return
					}
					g.Release()
				}
			})
		}
		for range 500 {
			for _, r := range locks.OpenRequests() {
				if r.Recipe != "mutex" || r.Kind != "exclusive" || r.Since.IsZero() {
					b.Errorf("open is %+v", r)
				}
			}
			locks.Mutex(b.LockPath + "/0").HeldHere()
		}
		closed := make(chan error)
		go func() { closed <- locks.Close() }()
		for range 100 {
			locks.OpenRequests()
		}
		locktest.Must(b, <-closed)
		users.Wait()
		expectOpen(b, locks)
	})
}
