package simplelock_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/examples/simplelocks/simplelock"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const (
	exclusive = uint32(messages.Kind_EXCLUSIVE)
	read      = uint32(messages.Kind_READ)
	write     = uint32(messages.Kind_WRITE)
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program has a bridge, and so a session, of its own.
type program struct {
	t      testing.TB
	system *host.System
	bridge *zkbridge.Bridge
	path   string

	mu      sync.Mutex
	sent    map[embedded.Op]int // requests
	sending func(embedded.Op)   // called before a message is sent, unless nil
	conn    net.Conn            // the newest
}

func open(t testing.TB, s *zktest.Server, path string, configure ...func(*zkbridge.Config)) *program {
	t.Helper()
	p := &program{t: t, path: path, system: host.NewSystem(nil, nil), sent: map[embedded.Op]int{}}
	cfg := zkbridge.Config{Servers: s.Addr(), SessionTimeout: time.Minute, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := s.Dial(ctx, network, address)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.conn = conn
		return &wire{Conn: conn, p: p}, err
	}}
	for _, c := range configure {
		c(&cfg)
	}
	var err error
	p.bridge, err = zkbridge.Open(p.system, cfg)
	must(t, err)
	t.Cleanup(func() {
		p.bridge.Close()
		p.system.Close()
	})
	ctx, cancel := context.WithTimeout(context.Background(), zktest.TimeLimit)
	defer cancel()
	must(t, p.bridge.Connected(ctx))
	return p
}

// onSend has f called before each message is sent.
func (p *program) onSend(f func(embedded.Op)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending = f
}

// cut closes the newest connection.
func (p *program) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn.Close()
}

// takeSent returns the numbers of requests since the last call.
func (p *program) takeSent() map[embedded.Op]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = map[embedded.Op]int{}
	return sent
}

// waitSent waits until n requests were sent since takeSent.
func (p *program) waitSent(op embedded.Op, n int) {
	p.t.Helper()
	zktest.Eventually(p.t, zktest.TimeLimit, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.sent[op] >= n
	}, "%d requests %v are sent", n, op)
}

// wire is a connection of a process. The bridge writes whole messages.
type wire struct {
	net.Conn
	p      *program
	writes int
}

func (w *wire) Write(messages []byte) (int, error) {
	if w.writes++; w.writes == 1 { // the handshake
		return w.Conn.Write(messages)
	}
	for rest := messages; len(rest) >= 12; rest = rest[4+binary.BigEndian.Uint32(rest):] {
		op := embedded.Op(binary.BigEndian.Uint32(rest[8:]))
		w.p.mu.Lock()
		w.p.sent[op]++
		sending := w.p.sending
		w.p.mu.Unlock()
		if sending != nil {
			sending(op)
		}
	}
	return w.Conn.Write(messages)
}

// owner is the owner of one contender. It is a recipient that is no actor.
type owner struct {
	t     testing.TB
	lock  messages.LockRef
	kind  uint32
	id    uint64 // of the latest request
	inbox chan any
}

// Tell implements ask.Recipient.
func (o *owner) Tell(msg any) { o.inbox <- msg }

func (p *program) owner(form simplelock.Form, kind uint32) *owner {
	return &owner{t: p.t, lock: simplelock.Start(p.system, p.bridge, p.path, form), kind: kind, inbox: make(chan any, 1000)}
}

func (o *owner) acquire() {
	o.id++
	o.lock.SendAcquire(&messages.Acquire{RequestId: o.id, Kind: o.kind, Data: []byte("data")}, o)
}

func (o *owner) release() { o.lock.SendRelease(&messages.Release{RequestId: o.id}, o) }

func (o *owner) cancel() { o.lock.SendCancel(&messages.Cancel{RequestId: o.id}, o) }

// next returns the next message, which is a T.
func next[T any](o *owner) T {
	o.t.Helper()
	select {
	case msg := <-o.inbox:
		if m, ok := msg.(T); ok {
			return m
		} else {
			o.t.Fatalf("%T %v, want %T", msg, msg, m)
		}
	case <-time.After(zktest.TimeLimit):
		o.t.Fatalf("no %T", *new(T))
	}
	panic("not reached")
}

func (o *owner) granted() *messages.Granted {
	o.t.Helper()
	g := next[*messages.Granted](o)
	if g.RequestId != o.id {
		o.t.Fatalf("%v, want request %d", g, o.id)
	}
	return g
}

func (o *owner) hold() *messages.Granted {
	o.t.Helper()
	o.acquire()
	return o.granted()
}

func (o *owner) leave() {
	o.t.Helper()
	o.release()
	next[*messages.Released](o)
}

func (o *owner) refused(want messages.Reason) {
	o.t.Helper()
	if m := next[*messages.Refused](o); m.Reason != want {
		o.t.Fatalf("%v, want %v", m, want)
	}
}

func (o *owner) lost(want messages.Reason) {
	o.t.Helper()
	if m := next[*messages.Lost](o); m.Reason != want {
		o.t.Fatalf("%v, want %v", m, want)
	}
}

// none fails the test if a message has come.
func (o *owner) none() {
	o.t.Helper()
	select {
	case msg := <-o.inbox:
		o.t.Errorf("%T %v, unexpectedly", msg, msg)
	default:
	}
}

func waitNodes(t *testing.T, s *zktest.Server, path string, n int) (names []string) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool { names = s.Nodes(t, path); return len(names) == n }, "%d nodes in %s", n, path)
	return names
}
