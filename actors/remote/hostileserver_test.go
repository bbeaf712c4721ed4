package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
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
	ctx context.Context

	hello            *messages.Hello // nil before it has come
	began            bool
	sent, got        uint64
	renew            uint64
	requests, asking []uint64
}

// Send implements remote.ClientTransport: it takes a frame of the client.
func (s *hostileStream) Send(f *messages.ClientFrame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Hello != nil {
		s.hello = f.Hello
	}
	if f.Renew != nil {
		s.renew = f.Renew.Number
	}
	if n := len(f.Messages); n > 0 {
		s.got = f.First + uint64(n) - 1
	}
	for _, m := range f.Messages {
		if a := m.GetAcquire(); a != nil {
			s.requests = append(s.requests, a.Acquire.RequestId)
		}
		if q := m.GetQuestion(); q != nil {
			s.asking = append(s.asking, q.Id)
		}
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().After(s.until) || s.r.IntN(200) == 0 {
		return nil, io.EOF
	}
	return s.frame(), nil
}

func (s *hostileStream) pause() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Int64N(int64(20 * time.Millisecond))
}

func (s *hostileStream) frame() *messages.ServerFrame {
	f := &messages.ServerFrame{}
	if !s.began {
		s.began = true
		f.Welcome = &messages.Welcome{Lease: s.r.Uint64N(3), Resumed: s.r.IntN(3) == 0, Incarnation: s.r.Uint64N(2), State: &messages.State{Connected: true}}
		if s.r.IntN(3) == 0 {
			f.Welcome = &messages.Welcome{Lease: 1 + s.hello.GetLease(), State: &messages.State{Connected: true}}
		}
		if s.r.IntN(20) == 0 {
			f.Welcome.State = nil
		}
		return f
	}
	if s.renews && s.r.IntN(3) == 0 {
		f.Renewed = &messages.Renewed{Number: s.renew, ForNanos: int64(5 * time.Second)}
		if s.r.IntN(4) == 0 {
			f.Renewed = &messages.Renewed{Number: s.number(s.renew), ForNanos: []int64{0, -1, math.MinInt64, int64(time.Second), 1}[s.r.IntN(5)]}
		}
	}
	switch s.r.IntN(100) {
	case 0:
		f.Ended = &messages.Ended{Reason: messages.Reason(s.r.IntN(12)), Detail: "so"}
	case 1:
		f.GoAway = true
	case 2:
		f.State = &messages.State{Connected: s.r.IntN(2) == 0}
	case 3:
		f.Welcome = &messages.Welcome{Lease: 7}
	}
	f.Received = s.got
	f.First = s.sent + 1
	if s.r.IntN(200) == 0 {
		f.Received, f.First = s.number(s.got), s.number(s.sent)
	}
	for range s.r.IntN(4) {
		f.Messages = append(f.Messages, s.message())
	}
	s.sent += uint64(len(f.Messages))
	return f
}

func (s *hostileStream) number(near uint64) uint64 {
	if s.r.IntN(10) == 0 {
		return []uint64{0, math.MaxUint64, math.MaxInt64}[s.r.IntN(3)]
	}
	return near + s.r.Uint64N(5) - 2
}

func (s *hostileStream) one(of []uint64) uint64 {
	if n := len(of); n > 0 && s.r.IntN(10) > 0 {
		return of[max(0, n-1-s.r.IntN(4))]
	}
	return s.number(3)
}

func (s *hostileStream) message() *messages.ServerMessage {
	m, id := &messages.ServerMessage{}, s.one(s.requests)
	reason := messages.Reason(s.r.IntN(30) - 2)
	switch s.r.IntN(12) {
	case 0:
		return nil
	case 1:
	case 2:
		m.What = []*messages.ServerMessage{{What: &messages.ServerMessage_Granted{}}, {What: &messages.ServerMessage_Lost{}}, {What: &messages.ServerMessage_Released{}},
			{What: &messages.ServerMessage_Refused{}}, {What: &messages.ServerMessage_Answer{}}, {What: &messages.ServerMessage_Contended{}}}[s.r.IntN(6)].What
	case 3, 4, 5:
		g := &messages.Granted{RequestId: id, Path: "/a", Node: "n", Czxid: s.r.Int64(), Epoch: s.r.Uint64()}
		if s.r.IntN(2) == 0 {
			g.Parts = []*messages.Granted{nil, {Path: "/b"}, {}}[:s.r.IntN(4)]
		}
		m.What = &messages.ServerMessage_Granted{Granted: g}
	case 6:
		m.What = &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: id, Reason: reason}}
	case 7:
		m.What = &messages.ServerMessage_Released{Released: &messages.Released{RequestId: id}}
	case 8:
		m.What = &messages.ServerMessage_Lost{Lost: &messages.Lost{RequestId: id, Reason: reason}}
	case 9:
		m.What = &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: id}}
	case 10:
		m.What = &messages.ServerMessage_Contended{Contended: &messages.Contended{RequestId: id}}
	default:
		values := []string{"", "null", "{", `{"value":null}`, `{"value":3,"error":{}}`, `{"error":{"skipped":{"/a":null}}}`, `{"value":{"Participants":[{}]}}`}
		m.What = &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: s.one(s.asking), Value: []byte(values[s.r.IntN(len(values))]), Reason: reason & 1}}
	}
	return m
}

// Whatever a lock server sends, its client believes in no grant without a lease, and each call ends.
func TestHostileServer(t *testing.T) {
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
		return &hostileStream{hostileServer: server, ctx: ctx}, nil
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
