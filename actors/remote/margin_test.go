package remote_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// With a margin a grant is lost so much before others may hold, whatever ends the lease.
func TestMarginOfALease(t *testing.T) {
	t.Parallel()
	const least = leaseTime / 5 * 9 / 10 // a fifth of the lease, less what the answer to the first renewal takes
	for name, end := range map[string]func(w *world){
		"cut off": func(w *world) { w.cut("first", "client", time.Hour) },
		"closed":  func(w *world) { w.closeServer(w.servers[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "first", "second")
				var clients []*actors.Locks
				for i, server := range w.names {
					w.startServer(server)
					l, err := remote.DialBy(t.Context(), w.dialer([]string{"client", "other"}[i]), []string{server},
						remote.DialConfig{Config: actors.Config{Margin: time.Minute, Logger: w.logger("")}})
					if err != nil {
						t.Fatal(err)
					}
					clients = append(clients, l)
				}
				g := lockOf(t, clients[0].Mutex("/a"))
				next := clients[1].Mutex("/a").Acquire(t.Context())
				<-time.After(10 * time.Second)
				if g.Err() != nil {
					t.Fatal(g.Err())
				}
				go end(w)
				<-g.Done()
				lost := time.Now()
				w.heal() // the client can tell the server at once
				if _, err := next.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if after := time.Since(lost); after < least || after > 2*leaseTime {
					t.Errorf("the next client holds %v after the loss, want %v at least", after, least)
				}
				for _, l := range clients {
					l.Close()
				}
				<-time.After(2 * leaseTime)
				for _, s := range w.servers {
					if !s.dead {
						w.closeServer(s)
					}
				}
			})
		})
	}
}
