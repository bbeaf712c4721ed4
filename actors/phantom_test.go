package actors_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A server goes on to show the node of a holder that has left. The waiters behind that node hold in
// the end, in their session, with each recipe that waits for nodes.
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
		stale := <-address
		var waiting []*actors.Future[*actors.Grant]
		var held []*actors.Grant
		for _, r := range named("mutex", "write", "semaphore", "local queue") {
			g := lock(v, v.handle(holders, r))
			v.Haunt(stale, g.Node())
			held = append(held, g)
			waiting = append(waiting, v.handle(waiters, r).Acquire(context.Background()))
		}
		<-time.After(10 * time.Second)
		for _, g := range held {
			unlock(v, g)
		}
		<-time.After(30 * time.Second)
		pending(v, waiting...)
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
		if len(log.with(stale)) == 0 || len(log.with("leader does not have")) == 0 {
			v.Errorf("the log does not name %s: %s", stale, log.with())
		}
	})
}
