package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// failureLog fails the test when an actor has failed.
type failureLog struct{ t *testing.T }

func (f failureLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}
func (f failureLog) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f failureLog) WithGroup(string) slog.Handler      { return f }
func (f failureLog) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "two recipes use one path") || strings.HasPrefix(r.Message, "two processes use one path") {
		return nil // clients may have any recipe on any path: the log says so, as it does of programs with sessions
	}
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf("\n%s: %v", a.Key, a.Value); return true })
	f.t.Error(text)
	return nil
}

// hostileClient is one stream of a client that keeps to no protocol.
type hostileClient struct {
	*attacker
	first bool // the next frame is the first
	left  int  // frames
}

// Send implements remote.ServerTransport: it takes a frame of the server.
func (h *hostileClient) Send(f *messages.ServerFrame) error {
	h.take(f)
	return nil
}

// Recv implements remote.ServerTransport: it makes a frame of the client.
func (h *hostileClient) Recv() (*messages.ClientFrame, error) {
	if h.oneIn(2) {
		<-time.After(time.Duration(h.below(20)) * time.Millisecond)
	}
	if h.left--; h.left < 0 {
		return nil, io.EOF
	}
	frame := h.hello(choose[int](h, 0, 0, 1, 1, 2, 3, 4))
	if !h.first {
		frame = h.frame()
	}
	h.first = false
	var f messages.ClientFrame
	return &f, proto.Unmarshal(frame, &f)
}

// Clients that send anything harm no honest client: its lease goes on, it gets the lock of which they
// do not know, and the others once their leases are over. Nothing of them is left.
func TestHostileClients(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *historySeed != 0 {
		seeds = []uint64{*historySeed}
	}
	sampled := sample.OneIn(t, len(seeds))
	for _, seed := range seeds {
		if !sampled() {
			continue
		}
		zktest.Bubble(t, func(t *testing.T) { hostileClients(t, seed) })
		if t.Failed() {
			t.Fatalf("by -history.seed %d", seed)
		}
	}
}

func hostileClients(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 4))
	zk := zktest.Virtual(t)
	log := slog.New(failureLog{t})
	own, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{SessionTimeout: sessionTimeout, Margin: sessionMargin, Dial: zk.Dial, OmitHolder: true, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	server, err := remote.NewServer(own, remote.ServerConfig{Lease: leaseTime, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	f := newFabric(r)
	f.set("server", server)
	honest, err := remote.DialBy(t.Context(), f.dialer("one name"), []string{"server"}, remote.DialConfig{Config: actors.Config{Logger: log}})
	if err != nil {
		t.Fatal(err)
	}
	var hostile, work sync.WaitGroup
	for range 3 {
		random := rand.New(rand.NewPCG(r.Uint64(), 5))
		hostile.Go(func() {
			a := newAttacker(nil, 0, attackedPaths)
			for range 8 {
				// The server may read on when it has cut a stream off.
				own := newAttacker(drawn{rand.New(rand.NewPCG(random.Uint64(), 6))}, 1<<20, attackedPaths)
				own.leases, own.incarnation = a.known()
				a = own
				server.Connect(&hostileClient{attacker: own, first: true, left: random.IntN(400)}, "one name")
			}
		})
	}
	end := make(chan struct{})
	var private, shared atomic.Int64
	use := func(path string, granted *atomic.Int64, wrong func(error) bool) {
		for {
			select {
			case <-end:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			g, err := honest.Mutex(path).Lock(ctx)
			cancel()
			if err != nil && wrong(err) {
				t.Errorf("%s: %v", path, err)
			}
			if err == nil {
				granted.Add(1)
				<-time.After(50 * time.Millisecond)
				if err := g.Unlock(t.Context()); err != nil && wrong(err) {
					t.Errorf("%s: %v", path, err)
				}
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	work.Go(func() { use("/honest/own", &private, func(error) bool { return true }) })
	work.Go(func() {
		use("/locks/0", &shared, func(err error) bool { return errors.Is(err, actors.ErrSessionLost) })
	})
	hostile.Wait()
	<-time.After(3 * leaseTime)
	if private.Load() == 0 {
		t.Error("the honest client has not got its own lock")
	}
	if n := server.Clients(); n != 1 {
		t.Errorf("%d clients are left, not the honest one alone", n)
	}
	shared.Store(0)
	<-time.After(20 * time.Second)
	close(end)
	work.Wait()
	if shared.Load() == 0 {
		t.Error("the honest client does not get the shared lock after the end of the others")
	}
	if s := honest.Stats(); s.SessionsLost > 0 {
		t.Errorf("the honest client has lost its lease: %+v", s)
	}
	if err := honest.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/locks/0", "/locks/1", "/locks/2", "/honest/own"} {
		if nodes := zk.Nodes(t, path); len(nodes) > 0 {
			t.Errorf("%s has nodes at the end: %s", path, strings.Join(nodes, ", "))
		}
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
}
