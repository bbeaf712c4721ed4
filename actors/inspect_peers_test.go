package actors_test

import (
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// mustAcquire acquires a lock of another library.
func mustAcquire(b *testLock, l *interop.Lock) {
	b.Helper()
	if ok, err := l.Acquire(timeLimit); !ok || err != nil {
		b.Fatalf("%v, %v", ok, err)
	}
}

// Inspect returns the queue of Curator's clients.
func TestInspectCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		one, two := b.curator(), b.curator()
		locks := b.locks()
		reader, _ := one.ReadWriteLock(b.path + "-rw")
		for _, c := range []struct {
			path          string
			first, second *interop.Lock
			want          string
		}{
			{"-m", one.Mutex(b.path + "-m"), two.Mutex(b.path + "-m"), "mutex: exclusive! exclusive"},
			{"-rw", reader, two.WriteLock(b.path + "-rw"), "read-write: read! write"},
			{"-s", one.Semaphore(b.path+"-s", 1), two.Semaphore(b.path+"-s", 1), "semaphore: permit! permit"},
			{"-sm", one.SemaphoreMutex(b.path + "-sm"), two.SemaphoreMutex(b.path + "-sm"), "semaphore: permit! permit"},
			{"-l", one.LeaderLatch(b.path+"-l", "first"), two.LeaderLatch(b.path+"-l", "second"), "leader latch: exclusive! exclusive"},
		} {
			mustAcquire(b, c.first)
			done := c.second.Begin(timeLimit)
			q := waitQueue(b, locks, b.path+c.path, c.want)
			if q.Participants[0].Session != one.SessionID() || q.Participants[1].Session != two.SessionID() {
				b.Errorf("%+v", q)
			}
			if q.Participants[0].Host != "" || len(q.Participants[0].Data) == 0 { // its address, or the id of a latch
				b.Errorf("%+v", q.Participants[0])
			}
			must(b, c.first.Release())
			if r := <-done; !r.Held || r.Err != nil {
				b.Fatalf("%+v", r)
			}
			must(b, c.second.Release())
		}
	})
}

func TestInspectKazoo(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		one, two := b.kazoo(), b.kazoo()
		locks := b.locks()
		for _, c := range []struct {
			path          string
			first, second *interop.Lock
			want          string
		}{
			{"-m", one.Lock(b.path + "-m"), two.Lock(b.path + "-m"), "mutex: exclusive! exclusive"},
			{"-rw", one.ReadLock(b.path + "-rw"), two.WriteLock(b.path + "-rw"), "read-write: read! write"},
			{"-s", one.Semaphore(b.path+"-s", 1), two.Semaphore(b.path+"-s", 1), "semaphore: permit! request"},
		} {
			mustAcquire(b, c.first)
			done := c.second.Begin(timeLimit)
			q := waitQueue(b, locks, b.path+c.path, c.want)
			if strings.HasSuffix(c.path, "-s") && q.Permits != 1 {
				b.Errorf("%d permits", q.Permits)
			}
			must(b, c.first.Release())
			if r := <-done; !r.Held || r.Err != nil {
				b.Fatalf("%+v", r)
			}
			must(b, c.second.Release())
		}
	})
}
