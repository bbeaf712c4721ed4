package actors_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// Without a logger, slog.Default has one line for each change of the session, with the holders and
// waiters, and none for a normal start and end.
func TestSessionLog(t *testing.T) {
	log := defaultLog(t)
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		var kept []*actors.Future[*actors.Grant] // for the garbage collector, which is outside of the bubble
		defer func() { runtime.KeepAlive(kept) }()
		other := locks.Semaphore("/other", 1)
		g, h := lock(v, mu), lock(v, other)
		kept = append(kept, mu.Acquire(within(v)), mu.Acquire(within(v)))
		f := other.Acquire(within(v))
		synctest.Wait()
		if len(log.with()) > 0 {
			v.Errorf("at a normal start: %q", log.with())
		}
		v.Pause()
		v.DropConnections()
		synctest.Wait()
		log.expect(v, "level=WARN", "connection to ZooKeeper is lost", "held=2", "waiting=3", "session=0x", "deadline=", "why=")
		<-time.After(time.Second)
		v.Resume()
		<-time.After(time.Second)
		log.expect(v, "connection to ZooKeeper is back", "held=2", "waiting=3", "after=")
		must(v, g.Err())
		v.Pause()
		v.DropConnections()
		synctest.Wait()
		log.expect(v, "connection to ZooKeeper is lost")
		<-time.After(2 * session)
		log.expect(v, "ZooKeeper session is lost", "held=2", "waiting=3", "since=")
		is(v, h.Err(), actors.ErrSessionLost)
		<-time.After(5 * time.Second)
		v.Resume()
		<-time.After(session)
		log.expect(v, "there is a new ZooKeeper session", "after=")
		unlock(v, result(v, f))
		v.Expire(locks.Session().ID)
		synctest.Wait()
		<-time.After(session)
		for _, want := range []string{"ZooKeeper session is lost", "there is a new"} {
			if len(log.with(want)) != 1 {
				v.Errorf("%q is not once in %s", want, log.with())
			}
		}
		log.take()
		must(v, locks.Close())
		if len(log.with()) > 0 {
			v.Errorf("at a normal end: %q", log.with())
		}
	})
}

// After a pause of the process beyond the deadline the log has the loss and no suspension, because
// nobody holds or waits through one.
func TestNoSuspensionInLogAfterPause(t *testing.T) {
	log := defaultLog(t)
	bubble(t, func(v *virtual) {
		locks, bridge := v.onBridge()
		mu := locks.Mutex(v.path)
		g := lock(v, mu)
		resume := pauseBridge(bridge)
		defer resume()
		v.Pause()
		v.DropConnections()
		<-time.After(2 * session)
		is(v, g.Err(), actors.ErrSessionLost)
		resume()
		synctest.Wait()
		log.expect(v, "ZooKeeper session is lost", "held=1", "waiting=0", "since=")
		v.Resume()
		<-time.After(session)
		log.expect(v, "there is a new ZooKeeper session", "after=")
		is(v, failure(v, g.Release()), actors.ErrSessionLost)
	})
}

// A server that does not answer at the start is an error of Connect, and no line of the log.
func TestNoSessionLogWithoutSession(t *testing.T) {
	log := defaultLog(t)
	bubble(t, func(v *virtual) {
		v.Pause()
		_, err := actors.Connect(within(v), "embedded:1", actors.Config{SessionTimeout: session, Dial: v.Dial})
		if err == nil || len(log.with()) > 0 {
			v.Errorf("%v; %q", err, log.with())
		}
		v.Resume()
	})
}

// With RecordStacks the line about a dropped grant or future has the function of the request.
func TestRecordStacks(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		var log logs
		locks := b.locks(log.config, func(cfg *actors.Config) { cfg.RecordStacks, cfg.IdleTimeout = true, 10*time.Millisecond })
		dropGrant(b, locks.Mutex(b.path))
		collectUntil(b, func() bool { return len(log.with("grant was dropped")) == 1 }, "the log has the dropped grant")
		locks.Mutex(b.path).Acquire(within(b))
		collectUntil(b, func() bool { return len(log.with("future of a lock was dropped")) == 1 }, "the log has the dropped future")
		if line := log.with("grant was dropped")[0]; !strings.Contains(line, "since=") || !strings.Contains(line, "owner=forgetful") {
			b.Error(line)
		}
		for line, function := range map[string]string{"grant was dropped": "dropGrant", "future of a lock": "TestRecordStacks"} {
			for _, want := range []string{"path=" + b.path, function, "sessionlog_test.go:"} {
				if found := log.with(line)[0]; !strings.Contains(found, want) {
					b.Errorf("no %q in %s", want, found)
				}
			}
		}
		must(b, locks.Close())
	})
}

func dropGrant(b *testLock, mu *actors.Mutex) {
	b.Helper()
	if _, err := mu.Lock(within(b), actors.WithOwner("forgetful")); err != nil {
		b.Fatal(err)
	}
}

// Without a logger, slog.Default has the warnings of the bridge, too, and no other lines.
func TestMissingChrootWithoutLogger(t *testing.T) {
	log := defaultLog(t)
	bubble(t, func(v *virtual) {
		cfg := actors.Config{Dial: v.Dial, SessionTimeout: session}
		locks, err := actors.Connect(within(v), "embedded:1/typo", cfg)
		must(v, err)
		defer locks.Close()
		unlock(v, lock(v, locks.Mutex("/orders")))
		log.expect(v, "level=WARN", "the chroot was missing", "/typo")
	})
}
