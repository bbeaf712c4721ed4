package actors_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A server goes on to show the node of a holder that has left. The waiters behind that node come to
// hold nevertheless, in their session, by each recipe that waits for nodes.
func TestWaitBehindPhantom(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		var log logs
		address := make(chan string, 100)
		waiters := connect(v.T, "one:1,two:1", log.config, func(cfg *actors.Config) {
			cfg.SessionTimeout, cfg.Dial = session, func(ctx context.Context, network, to string) (net.Conn, error) {
				address <- to
				return v.Dial(ctx, network, to)
			}
		})
		holders := v.locks()
		bad := <-address
		var waiting []*actors.Future[*actors.Grant]
		var held []*actors.Grant
		for _, of := range []func(l *actors.Locks) locker{
			func(l *actors.Locks) locker { return l.Mutex("/lock-mutex") },
			func(l *actors.Locks) locker { return l.RWMutex("/lock-rw").Write() },
			func(l *actors.Locks) locker { return l.Semaphore("/lock-semaphore", 1) },
			func(l *actors.Locks) locker {
				return l.Mutex("/lock-local", actors.LocalQueue(actors.LocalQueueConfig{}))
			},
			func(l *actors.Locks) locker { return l.SimpleMutex("/lock-simple") }, // which asks the leader anyway
		} {
			g := lock(v, of(holders))
			v.Haunt(bad, g.Node())
			held = append(held, g)
			waiting = append(waiting, of(waiters).Acquire(context.Background()))
		}
		<-time.After(10 * time.Second)
		for _, g := range held {
			unlock(v, g)
		}
		<-time.After(30 * time.Second)
		pending(v, waiting[:len(waiting)-1]...)
		<-time.After(3 * time.Minute)
		for i, f := range waiting {
			if !isClosed(f.Done()) {
				v.Fatalf("%s waits for a phantom: %s", held[i].Path(), log.with())
			}
			g := result(v, f)
			if s := waiters.Session(); s.Epoch != 1 || g.Err() != nil {
				v.Errorf("%s: %v in %+v", g.Path(), g.Err(), s)
			}
			unlock(v, g)
		}
		if len(log.with(bad)) == 0 || len(log.with("leader does not have")) == 0 {
			v.Errorf("the log does not name %s: %s", bad, log.with())
		}
	})
}
