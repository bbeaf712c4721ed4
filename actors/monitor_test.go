package actors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// A Monitor gets each request with its context, and the requests of actors, too.
func TestMonitor(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		m := newCountingMonitor(b)
		locks := b.locks(config, m.config)
		type key struct{}
		ctx := context.WithValue(within(b), key{}, "mine")
		g, err := locks.RWMutex(b.path).Write().Lock(ctx, actors.WithOwner("me"))
		must(b, err)
		unlock(b, g)
		multi := locks.MultiLock(locks.Mutex(b.path+"/1"), locks.Mutex(b.path+"/2"))
		unlock(b, lock(b, multi))
		actorLock := pid(b, locks.Mutex(b.path+"/1"))
		all[0].send(actorLock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(actorLock, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
		want := []actors.MonitoredRequest{{Path: b.path, Recipe: "read-write", Kind: "write", Owner: "me"},
			{Path: multi.Path(), Recipe: "multi-lock", Kind: "exclusive"}, {Path: b.path + "/1", Recipe: "mutex", Kind: "exclusive"}}
		if fmt.Sprint(m.requests) != fmt.Sprint(want) {
			b.Errorf("the monitor has the requests %v", m.requests)
		}
		if m.contexts[0].Value(key{}) != "mine" || m.contexts[2].Value(key{}) != nil {
			b.Errorf("contexts %v", m.contexts)
		}
		must(b, m.compare(locks.Stats()))
		if uint64(m.batches) != locks.Stats().Batches {
			b.Errorf("%d batches, of %d", m.batches, locks.Stats().Batches)
		}
		must(b, locks.Close())
		if !m.stopped {
			b.Error("Close does not stop the monitor")
		}
	})
}

// A Monitor gets how long requests wait and hold, also of a grant that the end of its actor ends.
func TestMonitorDurations(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		m := newCountingMonitor(v)
		locks := v.locks(m.config)
		mu := locks.Mutex(v.path, actors.LocalQueue(actors.LocalQueueConfig{}))
		g := lock(v, mu)
		next := mu.Acquire(within(v))
		refused := mu.Acquire(within(v), actors.WithTimeout(300*time.Millisecond))
		<-time.After(400 * time.Millisecond)
		is(v, failure(v, refused), actors.ErrTimedOut)
		unlock(v, g)
		result(v, next)
		<-time.After(500 * time.Millisecond)
		must(v, locks.Close())
		ms := time.Millisecond
		if want := []time.Duration{0, 300 * ms, 400 * ms, 400 * ms, 500 * ms}; !slices.Equal(m.took, want) {
			v.Errorf("requests took %v, want %v", m.took, want)
		}
	})
}
