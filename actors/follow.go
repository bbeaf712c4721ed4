package actors

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/messages"
)

// follower is an observer in a process without ZooKeeper: the lock server observes.
type follower struct {
	publish func(Queue)

	mu       sync.Mutex
	queue    Queue // answered last, or with Err why there is no further answer
	answered bool
	outage   error // of the connection to the lock server
	shown    Queue // published last
	started  bool  // shown has been published
}

// follow publishes the queue until ctx ends. It asks again when the server has answered for the
// last time, as at the end of a lease.
func (h *handle) follow(ctx context.Context, publish func(Queue)) {
	f := &follower{queue: Queue{Path: h.path}, publish: publish}
	session := h.manager.Session
	var watching sync.WaitGroup
	defer watching.Wait() // nothing is published after the return
	watching.Go(func() {
		for s := range session.Sessions(ctx) {
			err := unreachable(session, s.State)
			f.show(ctx, func() { f.outage = err })
		}
	})
	for {
		err := askObserve.each(ctx, h, none{}, func(q Queue, err error) bool {
			f.show(ctx, func() { f.queue, f.queue.Err, f.answered = q, err, true })
			return ctx.Err() == nil
		})
		if err == nil {
			err = &messages.Failed{Reason: messages.Reason_DISCONNECTED}
		}
		f.show(ctx, func() { f.queue.Err = err })
		select {
		case <-time.After(inspection.ObservePoll):
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
	q := f.queue
	if f.outage != nil {
		q.Err = f.outage
	}
	if ctx.Err() == nil && (f.answered || q.Err != nil) && (!f.started || !sameQueue(q, f.shown)) {
		f.publish(q)
		f.shown, f.started = q, true
	}
}

// sameQueue reports whether a reader would see no difference.
func sameQueue(a, b Queue) bool {
	same := inspection.SameReason(a.Err, b.Err)
	a.Err, b.Err = nil, nil
	return same && reflect.DeepEqual(a, b)
}
