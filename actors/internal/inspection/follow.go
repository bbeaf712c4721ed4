package inspection

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Observe publishes the queue of the lock, as readQueue returns it, and then again whenever contenders
// come or go, until ctx ends or the locks do. An error that it publishes is the reason why the queue
// cannot be read at present: the queue is then the one that was read last, or the present one without
// tokens. A lock server observes for a process without ZooKeeper.
func (t *Target) Observe(ctx context.Context, publish func(Snapshot, error)) {
	if t.Manager.Remote != nil {
		t.follow(ctx, publish)
		return
	}
	t.observe(ctx, struct{}{}, func(q Snapshot, err error) bool {
		publish(q, err)
		return true
	})
}

// follower is an observer in a process without ZooKeeper: the lock server observes.
type follower struct {
	publish func(Snapshot, error)

	mu       sync.Mutex
	queue    Snapshot // answered last
	err      error    // answered with it, or why there is no further answer
	answered bool
	outage   error    // of the connection to the lock server
	last     Snapshot // published last
	lastErr  error    // published with it
	started  bool     // last has been published
}

// follow publishes the queue until ctx ends. It asks again when the server has answered for the
// last time, as at the end of a lease.
func (t *Target) follow(ctx context.Context, publish func(Snapshot, error)) {
	f := &follower{publish: publish}
	session := t.Manager.Session
	var watching sync.WaitGroup
	defer watching.Wait() // nothing is published after the return
	watching.Go(func() {
		for s := range session.Sessions(ctx) {
			err := unreachable(session, s.State)
			f.show(ctx, func() { f.outage = err })
		}
	})
	for {
		err := observed.each(ctx, t, struct{}{}, func(q Snapshot, err error) bool {
			f.show(ctx, func() { f.queue, f.err, f.answered = q, err, true })
			return ctx.Err() == nil
		})
		if err == nil {
			err = &messages.Failed{Reason: messages.Reason_DISCONNECTED}
		}
		f.show(ctx, func() { f.err = err })
		select {
		case <-time.After(observePoll):
		case <-ctx.Done():
			return
		}
	}
}

// show publishes what a reader does not know after the change.
func (f *follower) show(ctx context.Context, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	q, err := f.queue, cmp.Or(f.outage, f.err)
	known := f.started && sameReason(err, f.lastErr) && reflect.DeepEqual(q, f.last)
	if ctx.Err() == nil && (f.answered || err != nil) && !known {
		f.publish(q, err)
		f.last, f.lastErr, f.started = q, err, true
	}
}
