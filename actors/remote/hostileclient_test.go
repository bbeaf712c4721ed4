package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf("\n%s: %v", a.Key, a.Value); return true })
	f.t.Error(text)
	return nil
}

// hostileClient is one stream of a client that keeps to no protocol. Its frames are random.
type hostileClient struct {
	r     *rand.Rand
	first bool // the next frame is the first
	left  int  // frames
	known *known

	mu       sync.Mutex
	received uint64 // the number of the last message of the server
	sent     uint64
}

// known is what all hostile clients know of the server.
type known struct {
	mu          sync.Mutex
	incarnation uint64
	leases      []uint64
}

// Send implements remote.ServerTransport: it takes a frame of the server.
func (h *hostileClient) Send(f *messages.ServerFrame) error {
	if w := f.GetWelcome(); w != nil {
		h.known.mu.Lock()
		h.known.incarnation = w.Incarnation
		h.known.leases = append(h.known.leases, w.Lease)
		h.known.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(f.Messages); n > 0 {
		h.received = f.First + uint64(n) - 1
	}
	return nil
}

// Recv implements remote.ServerTransport: it makes a frame of the client.
func (h *hostileClient) Recv() (*messages.ClientFrame, error) {
	if h.r.IntN(2) == 0 {
		<-time.After(time.Duration(h.r.Int64N(int64(20 * time.Millisecond))))
	}
	if h.left--; h.left < 0 {
		return nil, io.EOF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &messages.ClientFrame{}
	if h.first || h.r.IntN(300) == 0 {
		f.Hello = h.hello()
		if h.first {
			h.first = false
			return f, nil
		}
	}
	if h.r.IntN(4) == 0 {
		f.Renew = &messages.Renew{Number: h.number(h.sent), Got: h.number(h.sent)}
	}
	f.Bye = h.r.IntN(300) == 0
	if h.r.IntN(2) == 0 {
		f.Received = h.received
	}
	if h.r.IntN(200) == 0 {
		f.Received = h.number(h.received)
	}
	f.First = h.sent + 1
	if h.r.IntN(200) == 0 {
		f.First = h.number(h.sent)
	}
	for range h.r.IntN(6) {
		f.Messages = append(f.Messages, h.message())
	}
	h.sent += uint64(len(f.Messages))
	return f, nil
}

func (h *hostileClient) hello() *messages.Hello {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	hello := &messages.Hello{Version: 1, Client: strings.Repeat("x", h.r.IntN(3)<<10), Incarnation: h.known.incarnation}
	lease := func() uint64 {
		if n := len(h.known.leases); n > 0 && h.r.IntN(2) == 0 {
			return h.known.leases[h.r.IntN(n)] + uint64(h.r.IntN(2)) // another lease may be the next
		}
		return uint64(h.r.IntN(8))
	}
	switch h.r.IntN(6) {
	case 0:
		hello.Version = uint32(h.r.IntN(3))
	case 1, 2:
		hello.Lease = lease()
	case 3:
		hello.LetGo = lease()
	}
	return hello
}

// number returns a number near another one, or an extreme one.
func (h *hostileClient) number(near uint64) uint64 {
	if h.r.IntN(10) == 0 {
		return []uint64{0, math.MaxUint64, math.MaxInt64, 1 << 63}[h.r.IntN(4)]
	}
	return near + uint64(h.r.IntN(5)) - 2
}

func (h *hostileClient) path() string {
	return []string{"/locks/0", "/locks/1", "/locks/0", "/locks/1", "/locks/2", "", "/", "x", "/zookeeper", "/locks/\x00", "/locks/0/", "/" + strings.Repeat("x", 1<<17),
		"/locks/0-leases", "/locks/counts"}[h.r.IntN(14)]
}

func (h *hostileClient) duration() int64 {
	return []int64{0, 1, int64(time.Second), int64(time.Hour), math.MaxInt64, math.MinInt64, -1}[h.r.IntN(7)]
}

func (h *hostileClient) lock(deep int) *messages.LockSpec {
	if h.r.IntN(20) == 0 {
		return nil
	}
	s := &messages.LockSpec{}
	if h.r.IntN(2) == 0 {
		return s
	}
	s.Recipe = messages.Recipe(h.r.IntN(7) - 1)
	if s.Recipe == messages.Recipe_SEMAPHORE || h.r.IntN(10) == 0 {
		s.Permits = uint32(h.number(3))
	}
	if h.r.IntN(5) == 0 {
		s.CountPath = h.path()
	}
	if h.r.IntN(5) == 0 {
		s.DelayNanos = h.duration()
	}
	if h.r.IntN(4) == 0 {
		s.LocalQueue = &messages.LocalQueue{Grants: h.duration(), TimeNanos: h.duration(), LingerNanos: h.duration()}
	}
	if deep > 0 && (s.Recipe == messages.Recipe_MULTI_LOCK || h.r.IntN(10) == 0) {
		for range h.r.IntN(4) {
			s.Members = append(s.Members, &messages.Member{Path: h.path(), Lock: h.lock(deep - 1), Kind: uint32(h.r.IntN(4))})
		}
		if h.r.IntN(10) == 0 {
			s.Members = append(s.Members, nil)
		}
		if h.r.IntN(20) == 0 {
			s.Members = append(s.Members, make([]*messages.Member, 100)...)
		}
	}
	return s
}

// request returns the id of a request, which may be open.
func (h *hostileClient) request() uint64 {
	if h.r.IntN(20) == 0 {
		return h.number(0)
	}
	return uint64(h.r.IntN(30))
}

func (h *hostileClient) message() *messages.ClientMessage {
	m := &messages.ClientMessage{}
	switch h.r.IntN(16) {
	case 0:
		return nil
	case 1:
	case 2:
		m.What = &messages.ClientMessage_Acquire{Acquire: []*messages.AcquireLock{nil, {}, {Path: "/locks/0", Lock: &messages.LockSpec{}}}[h.r.IntN(3)]}
	case 3, 4, 5, 6:
		a := &messages.Acquire{RequestId: h.request(), Owner: []string{"", "a", "b", strings.Repeat("o", 1020), strings.Repeat("o", 1<<16)}[h.r.IntN(5)],
			Kind: uint32(h.r.IntN(4)), Try: h.r.IntN(2) == 0, Permits: uint32(h.r.IntN(3)), WaitNanos: h.duration(), HoldNanos: h.duration(),
			NotifyContended: true, Revocable: true, Data: make([]byte, []int{0, 0, 0, 10, 2 << 20}[h.r.IntN(5)])}
		m.What = &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: h.path(), Lock: h.lock(2), Acquire: a}}
	case 7:
		m.What = &messages.ClientMessage_Cancel{Cancel: []*messages.Cancel{nil, {RequestId: h.request()}}[h.r.IntN(2)]}
	case 8, 9, 10:
		m.What = &messages.ClientMessage_Release{Release: []*messages.Release{nil, {RequestId: h.request()}, {RequestId: h.request(), Owner: "a"}}[h.r.IntN(3)]}
	case 11:
		m.What = &messages.ClientMessage_HoldExpired{HoldExpired: h.request()}
	case 12:
		m.What = &messages.ClientMessage_Withdraw{Withdraw: h.request()}
	default:
		if h.r.IntN(8) == 0 {
			m.What = &messages.ClientMessage_Question{}
			return m
		}
		kinds := []string{"inspect", "find", "observe", "participants", "remaining", "verify", "verify-token", "count", "generation", "health", "none", "revoke", "set-count"}
		arguments := []string{"", "null", "{}", "[]", "{", "-1", "1e99", `"x"`, `{"Grants":null,"Owner":"a"}`, `{"Interval":-5}`, "[null]"}
		m.What = &messages.ClientMessage_Question{Question: &messages.Question{Id: h.request(), Kind: kinds[h.r.IntN(len(kinds))], Path: h.path(), Lock: h.lock(2),
			Arguments: []byte(arguments[h.r.IntN(len(arguments))])}}
	}
	return m
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
	begun := &known{}
	for range 3 {
		random := rand.New(rand.NewPCG(r.Uint64(), 5))
		hostile.Go(func() {
			for range 8 {
				own := rand.New(rand.NewPCG(random.Uint64(), 6)) // the server may read on when it has cut a stream off
				server.Connect(&hostileClient{r: own, first: true, left: random.IntN(400), known: begun}, "one name")
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
