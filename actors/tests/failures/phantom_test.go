package failures

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A server goes on to show the node of a holder that has left. The waiters behind that node hold in
// the end, in their session, with each recipe that waits for nodes.
func TestWaitBehindPhantom(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption() // they stay on the server that shows the node
		var log locktest.Log
		address := make(chan string, 100)
		waiters := locktest.Connect(v.T, "one:1,two:1", log.Config, func(cfg *actors.Config) {
			cfg.SessionTimeout, cfg.Dial = locktest.SessionTimeout, func(ctx context.Context, network, to string) (net.Conn, error) {
				address <- to
				return v.Dial(ctx, network, to)
			}
		})
		holders := v.Locks()
		stale := <-address
		var waiting []*actors.Future[*actors.Grant]
		var held []*actors.Grant
		for _, r := range locktest.Named("mutex", "write", "semaphore", "local queue") {
			g := locktest.Lock(v, v.HandleOf(holders, r))
			v.Haunt(stale, g.Node())
			held = append(held, g)
			waiting = append(waiting, v.HandleOf(waiters, r).Acquire(context.Background()))
		}
		<-time.After(10 * time.Second)
		for _, g := range held {
			locktest.Unlock(v, g)
		}
		<-time.After(30 * time.Second)
		locktest.Pending(v, waiting...)
		<-time.After(3 * time.Minute)
		for i, f := range waiting {
			if !locktest.IsClosed(f.Done()) {
				v.Fatalf("%s waits for a phantom: %s", held[i].Path(), log.With())
			}
			g := locktest.Result(v, f)
			if s := waiters.Session(); s.Epoch != 1 || g.Err() != nil {
				v.Errorf("%s: %v in %+v", g.Path(), g.Err(), s)
			}
			locktest.Unlock(v, g)
		}
		if len(log.With(stale)) == 0 || len(log.With("leader does not have")) == 0 {
			v.Errorf("the log does not name %s: %s", stale, log.With())
		}
	})
}
