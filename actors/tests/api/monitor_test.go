package api

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// A Monitor gets each request with its context, and the requests of actors, too.
func TestMonitor(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		m := locktest.NewCountingMonitor(b)
		locks := b.Locks(config, m.Config)
		type key struct{}
		ctx := context.WithValue(locktest.Within(b), key{}, "mine")
		g, err := locks.RWMutex(b.LockPath).Write().Lock(ctx, actors.WithOwner("me"))
		locktest.Must(b, err)
		locktest.Unlock(b, g)
		multi := locks.MultiLock(locks.Mutex(b.LockPath+"/1"), locks.Mutex(b.LockPath+"/2"))
		locktest.Unlock(b, locktest.Lock(b, multi))
		actorLock := locktest.PID(b, locks.Mutex(b.LockPath+"/1"))
		all[0].Send(actorLock, &messages.Acquire{RequestId: 1})
		all[0].Granted(1)
		all[0].Send(actorLock, &messages.Release{RequestId: 1})
		all[0].Released(1, 0)
		want := []actors.MonitoredRequest{{Path: b.LockPath, Recipe: "read-write", Kind: "write", Owner: "me"},
			{Path: multi.Path(), Recipe: "multi-lock", Kind: "exclusive"}, {Path: b.LockPath + "/1", Recipe: "mutex", Kind: "exclusive"}}
		if fmt.Sprint(m.Requests) != fmt.Sprint(want) {
			b.Errorf("the monitor has the requests %v", m.Requests)
		}
		if m.Contexts[0].Value(key{}) != "mine" || m.Contexts[2].Value(key{}) != nil {
			b.Errorf("contexts %v", m.Contexts)
		}
		locktest.Must(b, m.Compare(locks.Stats()))
		if uint64(m.Batches) != locks.Stats().Batches {
			b.Errorf("%d batches, of %d", m.Batches, locks.Stats().Batches)
		}
		locktest.Must(b, locks.Close())
		if !m.Stopped {
			b.Error("Close does not stop the monitor")
		}
	})
}

// A Monitor gets how long requests wait and hold, also of a grant that the end of its actor ends.
func TestMonitorDurations(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		m := locktest.NewCountingMonitor(v)
		locks := v.Locks(m.Config)
		mu := locks.Mutex(v.LockPath, actors.LocalQueue(actors.LocalQueueConfig{}))
		g := locktest.Lock(v, mu)
		next := mu.Acquire(locktest.Within(v))
		refused := mu.Acquire(locktest.Within(v), actors.WithTimeout(300*time.Millisecond))
		<-time.After(400 * time.Millisecond)
		locktest.Is(v, locktest.Failure(v, refused), actors.ErrTimedOut)
		locktest.Unlock(v, g)
		locktest.Result(v, next)
		<-time.After(500 * time.Millisecond)
		locktest.Must(v, locks.Close())
		ms := time.Millisecond
		if want := []time.Duration{0, 300 * ms, 400 * ms, 400 * ms, 500 * ms}; !slices.Equal(m.Took, want) {
			v.Errorf("requests took %v, want %v", m.Took, want)
		}
	})
}

// A release that ZooKeeper has not confirmed holds the lock: it counts as held in an outage, and as lost if
// the session is lost before the answer, as Unlock says. It does not count as released.
func TestReleaseInAnOutage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		var log locktest.Log
		m := locktest.NewCountingMonitor(v)
		locks := v.Locks(m.Config, log.Config)
		var grants []*actors.Grant
		for i := range 3 {
			grants = append(grants, locktest.Lock(v, locks.Mutex(fmt.Sprint(v.LockPath, "/", i))))
		}
		restore := v.CutOff()
		sessions := locks.Sessions(locktest.Within(v))
		await := func(state messages.SessionState) {
			for s := range sessions {
				if s.State == state {
					return
				}
			}
		}
		await(messages.SessionState_SUSPENDED)
		var released []*actors.Future[struct{}]
		for _, g := range grants {
			released = append(released, g.Release())
		}
		synctest.Wait()
		if s := locks.Stats(); s.Held != 3 || s.Released != 0 {
			v.Errorf("in the outage: %s", locktest.StatsText(s))
		}
		await(messages.SessionState_LOST)
		for _, r := range released {
			_, err := r.Wait(locktest.Within(v))
			locktest.Is(v, err, actors.ErrSessionLost)
		}
		synctest.Wait()
		if s := locks.Stats(); s.Held != 0 || s.Released != 0 || s.Lost[actors.ErrSessionLost] != 3 {
			v.Errorf("behind it: %s", locktest.StatsText(s))
		}
		locktest.Must(v, m.Compare(locks.Stats()))
		if lines := log.With("session is lost", "held=3"); len(lines) != 1 {
			v.Errorf("%q", log.Take())
		}
		restore()
	})
}
