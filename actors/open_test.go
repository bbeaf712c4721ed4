package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// Open returns each request of the process once, of each recipe and each sender.
func TestOpen(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		locks := b.locks(config)
		expectOpen(b, locks)
		me := actors.WithOwner("me")
		grants := []*actors.Grant{
			lock(b, locks.Mutex(b.path), me),
			lock(b, locks.RWMutex(b.path+"/rw").Read()),
			lock(b, locks.Semaphore(b.path+"/s", 3), actors.Permits(2)),
			lock(b, locks.MultiLock(locks.Mutex(b.path+"/m1"), locks.Mutex(b.path+"/m2"))),
			lock(b, locks.Mutex(b.path+"/local", actors.LocalQueue(actors.LocalQueueConfig{})), me),
		}
		waiting := locks.RWMutex(b.path + "/rw").Write().Acquire(within(b))
		all[0].send(pid(b, locks.Mutex(b.path)), &messages.Acquire{RequestId: 7, Owner: "actor"})
		expectOpen(b, locks,
			"mutex exclusive held me",
			"mutex exclusive waiting actor "+all[0].self.Address+"/"+all[0].self.Id,
			"mutex exclusive held me",
			"read-write read held",
			"read-write write waiting",
			"semaphore permit held",
			"multi-lock exclusive held")
		waiting.Cancel()
		all[0].send(pid(b, locks.Mutex(b.path)), &messages.Cancel{RequestId: 7, Owner: "actor"})
		all[0].refused(7, messages.Reason_CANCELLED)
		for _, g := range grants {
			unlock(b, g)
		}
		expectOpen(b, locks)
		must(b, locks.Close())
		expectOpen(b, locks)
	})
}

func expectOpen(b *testLock, locks *actors.Locks, want ...string) {
	b.Helper()
	var got []string
	for _, r := range locks.Open() {
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
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		start := time.Now()
		holder := lock(v, mu)
		<-time.After(time.Second)
		waiter := mu.Acquire(within(v), actors.WithOwner("me"))
		<-time.After(time.Second)
		expectSince(v, locks, start, actors.RequestHeld, time.Duration(0), actors.RequestWaiting, time.Second)
		unlock(v, holder)
		g := result(v, waiter)
		expectSince(v, locks, start, actors.RequestHeld, 2*time.Second)
		v.Expire(locks.Session().ID)
		closes(v, g.Done(), "the lost grant")
		expectSince(v, locks, start, actors.RequestLost, 2*time.Second)
		g.Release()
		synctest.Wait()
		if open := locks.Open(); len(open) > 0 {
			v.Errorf("open is %v", open)
		}
	})
}

func expectSince(v *virtual, locks *actors.Locks, start time.Time, want ...any) {
	v.Helper()
	var got []any
	for _, r := range locks.Open() {
		got = append(got, r.State, r.Since.Sub(start).Truncate(100*time.Millisecond))
	}
	if !slices.Equal(got, want) {
		v.Errorf("got %v, want %v", got, want)
	}
}

// HeldHere reports at once whether the handle's mode is held.
func TestHeldHere(t *testing.T) {
	each(t, func(b *testLock) {
		locks, other := b.locks(), b.locks()
		rw := locks.RWMutex(b.path)
		expect := func(when string, read, write, me bool) {
			b.Helper()
			if r, w, m := rw.Read().HeldHere(), rw.Write().HeldHere(), rw.Write().HeldHere("you", "me"); r != read || w != write || m != me {
				b.Errorf("%s: read %v, write %v, by me %v", when, r, w, m)
			}
		}
		expect("unused", false, false, false)
		g := lock(b, other.RWMutex(b.path).Write())
		waiting := rw.Write().Acquire(within(b), actors.WithOwner("me"))
		expect("held elsewhere", false, false, false)
		unlock(b, g)
		g = result(b, waiting)
		expect("write", false, true, true)
		reading := lock(b, rw.Read(), actors.WithOwner("me"))
		expect("both", true, true, true)
		g.Release()
		expect("downgraded", true, false, false)
		reading.Release()
		expect("released", false, false, false)
		multi := lock(b, locks.MultiLock(rw.Write()), actors.WithOwner("me"))
		expect("as a member", false, true, true)
		b.expire(locks)
		closes(b, multi.Done(), "the lost grant")
		expect("lost", false, false, false)
		multi.Release()
		local := locks.Mutex(b.path+"/local", actors.LocalQueue(actors.LocalQueueConfig{}))
		lg := lock(b, local)
		if !local.HeldHere() {
			b.Error("a local queue does not hold")
		}
		lg.Release()
		if local.HeldHere() {
			b.Error("a local queue holds without an owner")
		}
		must(b, locks.Close())
		must(b, other.Close())
		expect("closed", false, false, false)
	})
}

// Open returns, without a data race, while requests come and go, actors end, and Locks is closed.
func TestOpenMeanwhile(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks(idle(10 * time.Millisecond))
		b.cleanups = append(b.cleanups, func() { // ZooKeeper keeps a container in which no contender ever was
			conn := b.Client(b)
			for _, directory := range b.nodes() {
				conn.Delete(b.path+"/"+directory, -1)
			}
		})
		var users sync.WaitGroup
		for i := range 4 {
			users.Go(func() {
				for n := 0; ; n++ {
					g, err := locks.Mutex(fmt.Sprintf("%s/%d", b.path, (n+i)%20)).Lock(within(b))
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
			for _, r := range locks.Open() {
				if r.Recipe != "mutex" || r.Kind != "exclusive" || r.Since.IsZero() {
					b.Errorf("open is %+v", r)
				}
			}
			locks.Mutex(b.path + "/0").HeldHere()
		}
		closed := make(chan error)
		go func() { closed <- locks.Close() }()
		for range 100 {
			locks.Open()
		}
		must(b, <-closed)
		users.Wait()
		expectOpen(b, locks)
	})
}
