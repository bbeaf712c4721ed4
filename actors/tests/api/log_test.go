package api

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Without a logger, slog.Default has one line for each change of the session, with the holders and
// waiters, and none for a normal start and end.
func TestSessionLog(t *testing.T) {
	log := locktest.DefaultLog(t)
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		var kept []*actors.Future[*actors.Grant] // for the garbage collector, which is outside of the bubble
		defer func() { runtime.KeepAlive(kept) }()
		other := locks.Semaphore("/other", 1)
		g, h := locktest.Lock(v, mu), locktest.Lock(v, other)
		kept = append(kept, mu.Acquire(locktest.Within(v), actors.WithOwner("a")), mu.Acquire(locktest.Within(v), actors.WithOwner("b"))) // named: no hint at a nested request
		f := other.Acquire(locktest.Within(v), actors.WithOwner("c"))
		synctest.Wait()
		if len(log.With()) > 0 {
			v.Errorf("at a normal start: %q", log.With())
		}
		v.Pause()
		v.DropConnections()
		synctest.Wait()
		log.Expect(v, "level=WARN", "connection to ZooKeeper is lost", "held=2", "waiting=3", "session=0x", "deadline=", "why=")
		<-time.After(time.Second)
		v.Resume()
		<-time.After(time.Second)
		log.Expect(v, "connection to ZooKeeper is back", "held=2", "waiting=3", "after=")
		locktest.Must(v, g.Err())
		v.Pause()
		v.DropConnections()
		synctest.Wait()
		log.Expect(v, "connection to ZooKeeper is lost")
		<-time.After(2 * locktest.SessionTimeout)
		log.Expect(v, "ZooKeeper session is lost", "held=2", "waiting=3", "since=")
		locktest.Is(v, h.Err(), actors.ErrSessionLost)
		<-time.After(5 * time.Second)
		v.Resume()
		<-time.After(locktest.SessionTimeout)
		log.Expect(v, "there is a new ZooKeeper session", "after=")
		locktest.Unlock(v, locktest.Result(v, f))
		v.Expire(locks.Session().ID)
		synctest.Wait()
		<-time.After(locktest.SessionTimeout)
		for _, want := range []string{"ZooKeeper session is lost", "there is a new"} {
			if len(log.With(want)) != 1 {
				v.Errorf("%q is not once in %s", want, log.With())
			}
		}
		log.Take()
		locktest.Must(v, locks.Close())
		if len(log.With()) > 0 {
			v.Errorf("at a normal end: %q", log.With())
		}
	})
}

// After a pause of the process beyond the deadline the log has the loss and no suspension, because
// nobody holds or waits through one.
func TestNoSuspensionInLogAfterPause(t *testing.T) {
	log := locktest.DefaultLog(t)
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, bridge := v.OnBridge()
		mu := locks.Mutex(v.LockPath)
		g := locktest.Lock(v, mu)
		resume := locktest.PauseBridge(bridge)
		defer resume()
		v.Pause()
		v.DropConnections()
		<-time.After(2 * locktest.SessionTimeout)
		locktest.Is(v, g.Err(), actors.ErrSessionLost)
		resume()
		synctest.Wait()
		log.Expect(v, "ZooKeeper session is lost", "held=1", "waiting=0", "since=")
		v.Resume()
		<-time.After(locktest.SessionTimeout)
		log.Expect(v, "there is a new ZooKeeper session", "after=")
		locktest.Is(v, locktest.Failure(v, g.Release()), actors.ErrSessionLost)
	})
}

// A server that does not answer at the start is an error of Connect, and no line of the log.
func TestNoSessionLogWithoutSession(t *testing.T) {
	log := locktest.DefaultLog(t)
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.Pause()
		_, err := actors.Connect(locktest.Within(v), "embedded:1", actors.Config{SessionTimeout: locktest.SessionTimeout, Dial: v.Dial})
		if err == nil || len(log.With()) > 0 {
			v.Errorf("%v; %q", err, log.With())
		}
		v.Resume()
	})
}

// With RecordStacks the line about a dropped grant or future has the function of the request.
func TestRecordStacks(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config, func(cfg *actors.Config) { cfg.RecordStacks, cfg.IdleTimeout = true, 10*time.Millisecond })
		dropGrant(b, locks.Mutex(b.LockPath))
		locktest.CollectUntil(b, func() bool { return len(log.With("grant was dropped")) == 1 }, "the log has the dropped grant")
		locks.Mutex(b.LockPath).Acquire(locktest.Within(b))
		locktest.CollectUntil(b, func() bool { return len(log.With("future of a lock was dropped")) == 1 }, "the log has the dropped future")
		if line := log.With("grant was dropped")[0]; !strings.Contains(line, "since=") || !strings.Contains(line, "owner=forgetful") {
			b.Error(line)
		}
		for line, function := range map[string]string{"grant was dropped": "dropGrant", "future of a lock": "TestRecordStacks"} {
			for _, want := range []string{"path=" + b.LockPath, function, "log_test.go:"} {
				if found := log.With(line)[0]; !strings.Contains(found, want) {
					b.Errorf("no %q in %s", want, found)
				}
			}
		}
		locktest.Must(b, locks.Close())
	})
}

func dropGrant(b *locktest.Fixture, mu *actors.Mutex) {
	b.Helper()
	if _, err := mu.Lock(locktest.Within(b), actors.WithOwner("forgetful")); err != nil {
		b.Fatal(err)
	}
}

// Without a logger, slog.Default has the warnings of the bridge, too, and no other lines.
func TestMissingChrootWithoutLogger(t *testing.T) {
	log := locktest.DefaultLog(t)
	locktest.Bubble(t, func(v *locktest.Virtual) {
		cfg := actors.Config{Dial: v.Dial, SessionTimeout: locktest.SessionTimeout}
		locks, err := actors.Connect(locktest.Within(v), "embedded:1/typo", cfg)
		locktest.Must(v, err)
		defer locks.Close()
		locktest.Unlock(v, locktest.Lock(v, locks.Mutex("/orders")))
		log.Expect(v, "level=WARN", "the chroot was missing", "/typo")
	})
}

// The log has the path and the owner of a grant that is dropped without a release.
func TestForgottenRelease(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var logged locktest.Log
	locks := locktest.Connect(t, s.Addr(), logged.Config, locktest.IdleTimeout(10*time.Millisecond))
	func() { locktest.Lock(t, locks.Mutex("/orders"), actors.WithOwner("billing")) }()
	locktest.CollectUntil(t, func() bool {
		lines := logged.With("grant was dropped without Release")
		return len(lines) == 1 && strings.Contains(lines[0], "path=/orders") && strings.Contains(lines[0], "owner=billing")
	}, "the log has the dropped grant")
}

// A Keeper that hangs up on a request at the start of a process ends a session in which nothing is at
// stake: of that the log has only what an operator has to know, that directories stay.
func TestLogOfFirstSessionOnKeeper(t *testing.T) {
	log := locktest.DefaultLog(t)
	zktest.Bubble(t, func(t *testing.T) {
		b := locktest.NewFixture(t, zktest.Virtual(t, zktest.Version("keeper-22.8")))
		locks := b.Locks()
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath)))
		if locks.Stats().SessionsLost == 0 {
			t.Error("no session was lost: this shows nothing")
		}
		log.Expect(b, "level=WARN", "the server does not know containers")
		locktest.Must(b, locks.Close())
	})
}
