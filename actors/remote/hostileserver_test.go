package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// hostileServer is a lock server that keeps to no protocol.
type hostileServer struct {
	r      *rand.Rand
	mu     sync.Mutex
	renews bool      // it answers renewals
	until  time.Time // it sends nothing more
}

// hostileStream is a stream of it.
type hostileStream struct {
	*hostileServer
	*impostor
	ctx   context.Context
	began bool
}

// Send implements remote.ClientTransport: it takes a frame of the client.
func (s *hostileStream) Send(f *messages.ClientFrame) error {
	s.impostor.take(f)
	return nil
}

// CloseSend implements remote.ClientTransport.
func (s *hostileStream) CloseSend() error { return nil }

// Recv implements remote.ClientTransport: it makes a frame of the server.
func (s *hostileStream) Recv() (*messages.ServerFrame, error) {
	select {
	case <-time.After(time.Duration(1 + s.pause())):
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
	s.hostileServer.mu.Lock()
	defer s.hostileServer.mu.Unlock()
	if time.Now().After(s.until) || s.r.IntN(200) == 0 {
		return nil, io.EOF
	}
	var f messages.ServerFrame
	err := proto.Unmarshal(s.frame(), &f)
	if !s.renews {
		f.Renewed = nil
	}
	return &f, err
}

func (s *hostileServer) pause() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Int64N(int64(20 * time.Millisecond))
}

// frame makes a frame, that of an honest server most of the time as far as the lease goes.
func (s *hostileStream) frame() []byte {
	s.impostor.mu.Lock()
	defer s.impostor.mu.Unlock()
	fields := descriptorOf(&messages.ServerFrame{}).Fields()
	if !s.began {
		s.began = true
		w := &messages.Welcome{Lease: s.r.Uint64N(3), Resumed: s.r.IntN(3) == 0, Incarnation: s.r.Uint64N(2), State: &messages.State{Connected: true}}
		if s.r.IntN(3) == 0 {
			w = &messages.Welcome{Lease: 1 + s.hello.GetLease(), State: &messages.State{Connected: true}}
		}
		if s.r.IntN(10) == 0 {
			return appendField(nil, fields.ByName("welcome"), s.message(descriptorOf(w), 1))
		}
		return marshal(&messages.ServerFrame{Welcome: w})
	}
	frame := s.message(descriptorOf(&messages.ServerFrame{}), 0)
	if s.renews && s.r.IntN(3) == 0 {
		frame = appendField(frame, fields.ByName("renewed"), marshal(&messages.Renewed{Number: s.renew, ForNanos: int64(5 * time.Second)}))
	}
	s.count(frame)
	return frame
}

// Whatever a lock server sends, its client believes in no grant without a lease, and each call ends.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	sample.OneRaceRunIn(t, 4)
	seeds := uint64(8)
	if *historySeed != 0 {
		seeds = 1
	}
	for i := range seeds {
		seed := i + max(*historySeed, 1)
		zktest.Bubble(t, func(t *testing.T) { hostileToClient(t, seed) })
		if t.Failed() {
			t.Fatalf("by -history.seed %d", seed)
		}
	}
}

func hostileToClient(t *testing.T, seed uint64) {
	server := &hostileServer{r: rand.New(rand.NewPCG(seed, 7)), renews: seed%4 != 0, until: time.Now().Add(30 * time.Second)}
	dial := func(ctx context.Context, _ string) (remote.ClientTransport, error) {
		server.mu.Lock()
		defer server.mu.Unlock()
		if time.Now().After(server.until) || server.r.IntN(10) == 0 {
			return nil, errors.New("down")
		}
		return &hostileStream{hostileServer: server, impostor: newImpostor(drawn{rand.New(rand.NewPCG(server.r.Uint64(), 8))}, 256<<10), ctx: ctx}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	locks, err := remote.DialBy(ctx, dial, []string{"server", "other"}, remote.DialConfig{Config: actors.Config{Logger: slog.New(failureLog{t})}})
	if err != nil {
		if server.renews && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return
	}
	if !server.renews {
		t.Fatal("the client believes in a lease that was never granted")
	}
	var grants []*actors.Grant
	var mu sync.Mutex
	var users sync.WaitGroup
	both := locks.MultiLock(locks.Mutex("/a"), locks.Mutex("/b"))
	for i, lock := range []interface {
		Lock(context.Context, ...actors.Option) (*actors.Grant, error)
	}{locks.Mutex("/a"), locks.RWMutex("/c").Read(), both, locks.Semaphore("/d", 3)} {
		users.Go(func() {
			for time.Now().Before(server.until) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				g, err := lock.Lock(ctx, actors.WithOwner("owner"))
				if err == nil {
					mu.Lock()
					grants = append(grants, g)
					mu.Unlock()
					<-time.After(100 * time.Millisecond)
					if i > 0 {
						g.Unlock(ctx)
					}
				}
				locks.Mutex("/a").Participants(ctx)
				cancel()
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	users.Wait()
	<-time.After(10 * time.Second)
	for _, g := range grants {
		if g.Err() == nil {
			t.Errorf("%v is believed in without a lease", g)
		}
	}
	if err := locks.Close(); err != nil {
		t.Log(err)
	}
	t.Logf("%d grants", len(grants))
}
