package zkbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// secret must never be seen.
const secret = "pass-that-nobody-sees"

func digest(user string) []Auth { return []Auth{{"digest", user + ":" + secret}} }

// record keeps all that is logged, and checks that no secret is in it.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// record makes a Config log into a record, which is checked when the test ends.
func (r *record) of(t *testing.T, cfg Config) Config {
	cfg.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if text := r.String(); strings.Contains(text, secret) || text == "" {
			t.Errorf("the log shows a secret, or nothing: %s", text)
		}
	})
	return cfg
}

func TestAuth(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log record
		proxy, dir := zktest.Proxy(t, s.Addr()), s.Path(t)
		cfg := log.of(t, Config{Servers: proxy.Addr(), Auth: digest("a"), ACL: CreatorAll()})
		u := newUser(t, connected(t, cfg))
		node := u.created(dir, "n-").GetNode()
		if _, _, err := s.Client(t).Get(dir); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger reads %s: %v", dir, err)
		}
		stranger := newUser(t, connected(t, log.of(t, Config{Servers: s.Addr(), Auth: digest("b")})))
		stranger.create(dir, "n-")
		m := next[*messages.Failed](t, stranger.peer)
		if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "CREATE is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		friend := newUser(t, connected(t, log.of(t, Config{Servers: s.Addr(), Auth: append(digest("b"), digest("a")...)})))
		friend.release(dir, friend.created(dir, "n-").GetNode())
		next[*messages.NodeReleased](t, friend.peer)

		u.subscribe()
		proxy.Cut() // it authenticates again
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_CONNECTED)
		u.release(dir, node)
		next[*messages.NodeReleased](t, u.peer)
		u.created(dir, "n-")
		if u.epoch() != 1 {
			t.Errorf("in epoch %d", u.epoch())
		}
	})
}

func TestAuthRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log record
		b := open(t, log.of(t, Config{Servers: s.Addr(), Auth: []Auth{{"nonsense", secret}}}))
		err := b.Connected(inTime(t))
		if !errors.Is(err, messages.Reason_NO_AUTH) || !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), `"nonsense"`) {
			t.Errorf("%v", err)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("shows the secret: %v", err)
		}
		must(t, b.Close())
	})
}

// spoiler changes the scheme of credentials on their way, while on.
type spoiler struct{ on atomic.Bool }

func (s *spoiler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return spoiledConn{conn, s}, err
}

type spoiledConn struct {
	net.Conn
	spoiler *spoiler
}

func (c spoiledConn) Write(b []byte) (int, error) {
	if c.spoiler.on.Load() {
		b = bytes.Replace(b, []byte("digest"), []byte("tsegid"), 1)
	}
	return c.Conn.Write(b)
}

// TestAuthRefusedLater has servers that take no credentials any more.
func TestAuthRefusedLater(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log record
		var spoil spoiler
		proxy, dir := zktest.Proxy(t, s.Addr()), s.Path(t)
		b := connected(t, log.of(t, Config{Servers: proxy.Addr(), Auth: digest("a"), Dial: spoil.dial}))
		u := newUser(t, b)
		u.created(dir, "n-")
		u.subscribe()
		spoil.on.Store(true)
		proxy.Cut()
		if m := state(t, u.peer, messages.SessionState_LOST); !strings.Contains(m.GetDetail(), "refuses the credentials") {
			t.Errorf("%v", m)
		}
		const logged = "level=ERROR msg=\"server refuses the bridge's credentials\""
		zktest.Eventually(t, patience, func() bool { return strings.Count(log.String(), logged) >= 2 }, "it tries again")
		spoil.on.Store(false)
		state(t, u.peer, messages.SessionState_CONNECTED)
		u.created(dir, "n-")
		must(t, b.Close())
	})
}

// TestAuthOverFailingConnections is what blocks go-zookeeper's AddAuth for ever.
func TestAuthOverFailingConnections(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.BlackHole} {
		t.Run(action.String(), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) { testAuthOverFailingConnections(t, action) })
		})
	}
}

func testAuthOverFailingConnections(t *testing.T, action embedded.Action) {
	s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 200 * time.Millisecond})
	u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial, SessionTimeout: 2 * time.Second,
		ConnectTimeout: 100 * time.Millisecond, Auth: digest("a"), ACL: CreatorAll()}))
	u.subscribe()
	state(t, u.peer, messages.SessionState_CONNECTED)
	node := u.created("/d", "n-").GetNode()
	fault := s.Inject(embedded.Fault{Op: embedded.OpAuth, Times: 3, Action: action})
	s.DropConnections()
	for range 10 {
		u.create("/d", "more-")
	}
	state(t, u.peer, messages.SessionState_CONNECTED)
	for range 10 {
		next[*messages.Created](t, u.peer)
	}
	u.release("/d", node)
	next[*messages.NodeReleased](t, u.peer)
	if n := len(fault.Firings()); n != 3 || u.epoch() != 1 {
		t.Errorf("%d failed, epoch %d", n, u.epoch())
	}
}

// TestAuthNeverAnswered has a server that shakes hands and says nothing more.
func TestAuthNeverAnswered(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		sessionIDs := make(chan int64, 10)
		for range cap(sessionIDs) {
			sessionIDs <- 78
		}
		b := open(t, Config{Servers: "handshakeServer:1", Dial: handshakeServer(t, sessionIDs), SessionTimeout: time.Second,
			ConnectTimeout: 50 * time.Millisecond, Auth: digest("a")})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "authenticating with scheme \"digest\"") {
			t.Errorf("%v", err)
		}
	})
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	cfg := Config{Servers: "a", Auth: digest("a")}
	text, err := json.Marshal(cfg.Auth)
	must(t, err)
	var log record
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", cfg.Auth, "one", cfg.Auth[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "auth", cfg.Auth, "one", cfg.Auth[0], "cfg", cfg)
	all := fmt.Sprintf("%v %+v %#v %s %q %s", cfg, cfg, cfg, cfg.Auth, cfg.Auth, text) + log.String()
	_, err = Config{Servers: "a", Auth: []Auth{{"digest", secret}}}.check()
	if all += err.Error(); strings.Contains(all, secret) || !strings.Contains(all, "digest:(secret)") {
		t.Error(all)
	}
}

// TestRightsAreNamed takes one right away after the other.
func TestRightsAreNamed(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		for _, c := range []struct {
			right int32
			below string
			says  string
		}{
			{zk.PermCreate, "", "CREATE is not granted on "},
			{zk.PermCreate, "/below", "CREATE is not granted on "},
			{zk.PermCreate | zk.PermWrite, "", "CREATE is not granted on "},
		} {
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
			_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^c.right))
			must(t, err)
			u.create(dir+c.below, "n-")
			m := next[*messages.Failed](t, u.peer)
			if m.GetReason() != messages.Reason_NO_AUTH || !strings.HasSuffix(m.GetDetail(), c.says+dir) {
				t.Errorf("%+v: %v", c, m)
			}
		}
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		node := u.created(dir, "n-").GetNode()
		without(t, s, dir, zk.PermRead)
		without(t, s, dir+"/"+node, zk.PermRead)
		u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: dir}, u)
		if m := next[*messages.Failed](t, u.peer); !strings.HasSuffix(m.GetDetail(), "READ is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		u.bridge.Ref().SendWatch(&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}}, u)
		if m := next[*messages.Failed](t, u.peer); !strings.HasSuffix(m.GetDetail(), "READ is not granted on "+dir+"/"+node) {
			t.Errorf("%v", m)
		}
	})
}
