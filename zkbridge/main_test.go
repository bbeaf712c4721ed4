package zkbridge

import (
	"context"
	"log/slog"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// each is zktest.Each, with both halves beside one another and beside other tests. A run by habit has one in three of
// the real halves.
func each(t *testing.T, f func(t *testing.T, s *zktest.Server)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		if s.Real() {
			zktest.OneRunIn(t, 3)
		}
		t.Parallel()
		f(t, s)
	})
}

// eachOwn is each with servers that no other test uses: f counts their watches, or knows their zxids.
func eachOwn(t *testing.T, f func(t *testing.T, s *zktest.Server)) {
	t.Helper()
	t.Parallel()
	zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		f(t, s)
	})
}

// patience is how long a test waits for what must come, on the slowest machine.
const patience = time.Minute

// peer is a recipient that stands for a lock actor. One goroutine reads from it.
type peer struct {
	inbox chan any
	seen  []any // read while looking for something else
}

func newPeer() *peer { return &peer{inbox: make(chan any, 1<<16)} }

func (p *peer) Tell(msg any) { p.inbox <- msg }

// next returns the first T that the peer has received and that next has not returned yet.
func next[T any](t testing.TB, p *peer) T {
	t.Helper()
	for i, msg := range p.seen {
		if m, ok := msg.(T); ok {
			p.seen = append(p.seen[:i], p.seen[i+1:]...)
			return m
		}
	}
	timeout := time.After(patience)
	for {
		select {
		case msg := <-p.inbox:
			if m, ok := msg.(T); ok {
				return m
			}
			p.seen = append(p.seen, msg)
		case <-timeout:
			t.Fatalf("no %v within %v, only %v", reflect.TypeFor[T](), patience, p.seen)
		}
	}
}

// none fails the test if the peer has been told a T.
func none[T any](t testing.TB, p *peer) {
	t.Helper()
	for {
		select {
		case msg := <-p.inbox:
			p.seen = append(p.seen, msg)
			continue
		default:
		}
		break
	}
	for _, msg := range p.seen {
		if m, ok := msg.(T); ok {
			t.Errorf("was told %v, unexpectedly", m)
		}
	}
}

// state waits until the peer, which has subscribed, has received the state.
func state(t testing.TB, p *peer, want messages.SessionState) *messages.SessionChanged {
	t.Helper()
	for {
		if m := next[*messages.SessionChanged](t, p); m.GetState() == want {
			return m
		}
	}
}

// logger shows the bridge's log with the environment variable ZKBRIDGE_LOG.
func logger() *slog.Logger {
	if os.Getenv("ZKBRIDGE_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// open opens a bridge without waiting, to be closed when the test ends.
func open(t testing.TB, cfg Config) *Bridge {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = logger()
	}
	system := host.NewSystem(nil, nil)
	b, err := Open(system, cfg)
	if err != nil {
		system.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		<-b.ended
		system.Close()
	})
	return b
}

// connected opens a bridge and waits for its session. That is the longest one which the servers
// grant, so that a busy machine does not lose it.
func connected(t testing.TB, cfg Config) *Bridge {
	t.Helper()
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = time.Minute
	}
	b := open(t, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Connected(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

// attemptFails waits until an attempt to connect has failed with an error that says so.
func attemptFails(t testing.TB, b *Bridge, says string) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool {
		last := b.lastConnectError.Load()
		return last != nil && strings.Contains(last.err.Error(), says)
	}, "an attempt fails with an error that says %q", says)
}

// piped is a Dial to a server in this process, which is served on each connection.
func piped(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
}

// user is a peer of one bridge with short ways to ask for things.
type user struct {
	*peer
	t      testing.TB
	bridge *Bridge
	lastID uint64
}

func newUser(t testing.TB, b *Bridge) *user { return &user{peer: newPeer(), t: t, bridge: b} }

func (u *user) id() uint64 { u.lastID++; return u.lastID }

func (u *user) epoch() uint64 { return u.bridge.Session().Epoch }

func (u *user) create(directory, prefix string) uint64 {
	id := u.id()
	u.bridge.Ref().SendCreate(&messages.Create{Id: id, Epoch: u.epoch(), Directory: directory, Prefix: prefix}, u)
	return id
}

// together has all that send asks for sent in one transaction, if it fits.
func (u *user) together(send func()) {
	leave := make(chan struct{})
	u.bridge.ref.Tell(task(func(*bridgeActor) { <-leave }))
	send()
	close(leave)
}

func (u *user) created(directory, prefix string) *messages.Created {
	u.t.Helper()
	id := u.create(directory, prefix)
	m := next[*messages.Created](u.t, u.peer)
	if m.GetId() != id || m.GetEpoch() != u.epoch() {
		u.t.Errorf("Created answers %d of epoch %d, not %d of epoch %d", m.GetId(), m.GetEpoch(), id, u.epoch())
	}
	return m
}

func (u *user) release(directory, node string) uint64 {
	id := u.id()
	u.bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: id, Epoch: u.epoch(), Directory: directory, Node: node}, u)
	return id
}

func (u *user) list(directory string) []string {
	u.t.Helper()
	u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: u.epoch(), Directory: directory}, u)
	return next[*messages.Listed](u.t, u.peer).GetChildren()
}

func (u *user) watch(directory string, nodes ...string) *messages.Watched {
	u.t.Helper()
	u.bridge.Ref().SendWatch(&messages.Watch{Id: u.id(), Epoch: u.epoch(), Directory: directory, Nodes: nodes}, u)
	return next[*messages.Watched](u.t, u.peer)
}

func (u *user) subscribe() { u.bridge.Ref().SendSubscribe(&messages.Subscribe{}, u) }
