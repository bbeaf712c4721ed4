package interop

import (
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// mustAcquire acquires a lock of another library.
func mustAcquire(b *locktest.Fixture, l *interop.Lock) {
	b.Helper()
	if ok, err := l.Acquire(zktest.TimeLimit); !ok || err != nil {
		b.Fatalf("%v, %v", ok, err)
	}
}

// Inspect returns the queue of Curator's clients.
func TestInspectCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		one, two := curator(b), curator(b)
		locks := b.Locks()
		reader, _ := one.ReadWriteLock(b.LockPath + "-rw")
		for _, c := range []struct {
			path          string
			first, second *interop.Lock
			want          string
		}{
			{"-m", one.Mutex(b.LockPath + "-m"), two.Mutex(b.LockPath + "-m"), "mutex: exclusive! exclusive"},
			{"-rw", reader, two.WriteLock(b.LockPath + "-rw"), "read-write: read! write"},
			{"-s", one.Semaphore(b.LockPath+"-s", 1), two.Semaphore(b.LockPath+"-s", 1), "semaphore: permit! permit"},
			{"-sm", one.SemaphoreMutex(b.LockPath + "-sm"), two.SemaphoreMutex(b.LockPath + "-sm"), "semaphore: permit! permit"},
			{"-l", one.LeaderLatch(b.LockPath+"-l", "first"), two.LeaderLatch(b.LockPath+"-l", "second"), "leader latch: exclusive! exclusive"},
		} {
			mustAcquire(b, c.first)
			done := c.second.Begin(zktest.TimeLimit)
			q := locktest.WaitQueue(b, locks, b.LockPath+c.path, c.want)
			if q.Participants[0].Session != one.SessionID() || q.Participants[1].Session != two.SessionID() {
				b.Errorf("%+v", q)
			}
			if q.Participants[0].Host != "" || len(q.Participants[0].Data) == 0 { // its address, or the id of a latch
				b.Errorf("%+v", q.Participants[0])
			}
			locktest.Must(b, c.first.Release())
			if r := <-done; !r.Held || r.Err != nil {
				b.Fatalf("%+v", r)
			}
			locktest.Must(b, c.second.Release())
		}
	})
}

func TestInspectKazoo(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		one, two := kazoo(b), kazoo(b)
		locks := b.Locks()
		for _, c := range []struct {
			path          string
			first, second *interop.Lock
			want          string
		}{
			{"-m", one.Lock(b.LockPath + "-m"), two.Lock(b.LockPath + "-m"), "mutex: exclusive! exclusive"},
			{"-rw", one.ReadLock(b.LockPath + "-rw"), two.WriteLock(b.LockPath + "-rw"), "read-write: read! write"},
			{"-s", one.Semaphore(b.LockPath+"-s", 1), two.Semaphore(b.LockPath+"-s", 1), "semaphore: permit! request"},
		} {
			mustAcquire(b, c.first)
			done := c.second.Begin(zktest.TimeLimit)
			q := locktest.WaitQueue(b, locks, b.LockPath+c.path, c.want)
			if strings.HasSuffix(c.path, "-s") && q.Permits != 1 {
				b.Errorf("%d permits", q.Permits)
			}
			locktest.Must(b, c.first.Release())
			if r := <-done; !r.Held || r.Err != nil {
				b.Fatalf("%+v", r)
			}
			locktest.Must(b, c.second.Release())
		}
	})
}
