package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// Observe returns a channel with the queue of the lock at path, as Inspect returns it, and then
// again whenever contenders come or go:
//
//	for q := range locks.Observe(ctx, "/locks/orders") { fmt.Println(q) }
//
// A slow reader finds the newest queue, not those between, and delays no other part of the program.
// The queue is read ten times a second at most, and what a new contender brings is read once: a hot
// lock with many waiters costs little more than an idle one. ZooKeeper has one watch of this
// session for each of the lock's directories, however many observers there are; while the directory
// does not exist, Observe asks for it every second.
//
// Participants that come to hold meanwhile have a HeldSince, as the holders of this process have.
//
// Observe outlives the loss of connections and sessions. While the queue cannot be read, its Err is
// set, and the participants are those that were read last: see [Queue]. The server that this
// process is connected to may lag behind the others: see Inspect. The channel is closed when ctx
// ends or Locks is closed. If path is not acceptable or ctx is nil, the channel has one Queue with
// the Err, and is closed.
func (l *Locks) Observe(ctx context.Context, path string) <-chan Queue {
	out := make(chan Queue, 1)
	l.observe(ctx, path, func(q Queue) {
		select {
		case <-out: // not read yet
		default:
		}
		out <- q
	}, func() { close(out) })
	return out
}

// ObserveTo is Observe for an actor: it gets each Queue as a message, in order, from the start
// until ctx ends, the actor ends, or Locks is closed. An actor that is slow gets all of them.
func (l *Locks) ObserveTo(ctx context.Context, path string, to *actor.PID) {
	stop := func() {}
	if ctx != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		unwatch := l.manager.OnEnd(to, cancel)
		stop = func() {
			unwatch()
			cancel()
		}
	}
	l.observe(ctx, path, func(q Queue) { l.manager.ActorSystem().Root.Send(to, q) }, stop)
}

func (l *Locks) observe(ctx context.Context, path string, publish func(Queue), end func()) {
	err := check.Path(path)
	if ctx == nil {
		err = check.ErrNilContext
	}
	if err != nil {
		publish(Queue{Path: path, Err: err})
		end()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(l.manager.Ended(), cancel)
	go func() {
		l.at(path).Observe(ctx, func(shown inspection.Snapshot, err error) {
			q := queueOf(path, shown)
			q.Err = err
			publish(q)
		})
		unwatch()
		cancel()
		end()
	}()
}
