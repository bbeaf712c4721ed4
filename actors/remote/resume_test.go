package remote_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// What was sent by a stream whose other direction was silent arrives, and is answered, once the stream
// is resumed: whatever was confirmed by the time at which it broke, on one processor and on several.
func TestResumedStreams(t *testing.T) {
	for _, processors := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d processors", processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			zktest.Bubble(t, resumeStreams)
		})
	}
}

func resumeStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w := newWorld(t, 1)
	w.bursts.Store(true)
	w.names = []string{"server"}
	w.startServer("server")
	defer func() { w.closeServer(w.servers[0]) }()
	client, other := w.dialAs("client", 0), w.dialAs("other", 0)
	defer client.locks.Close()
	defer other.locks.Close()
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // by which the lease would be over
		w.cut("server", "client", time.Hour)
		var silent []*actors.Future[*actors.Grant]
		for j := range 1 + r.IntN(3) {
			silent = append(silent, client.locks.Mutex(fmt.Sprintf("/silent/%d-%d", i, j)).Acquire(ctx))
			<-time.After(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
		}
		w.breakStreams("client", "server")
		w.heal()
		for j, f := range silent {
			g, err := f.Wait(ctx)
			if err != nil {
				t.Fatalf("round %d: request %d, which was sent while the server was silent: %v", i, j, err)
			}
			w.cut("client", "server", time.Hour)
			<-time.After(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
			g.Release()
			<-time.After(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
			w.breakStreams("client", "server")
			w.heal()
			next, err := other.locks.Mutex(fmt.Sprintf("/silent/%d-%d", i, j)).Lock(ctx)
			if err != nil {
				t.Fatalf("round %d: a lock that was released while the client was not heard: %v", i, err)
			}
			next.Release()
		}
		if lost := client.locks.Stats().SessionsLost; lost > 0 {
			t.Fatalf("round %d: the lease is lost", i)
		}
		cancel()
	}
}
