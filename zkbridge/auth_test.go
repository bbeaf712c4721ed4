package zkbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func digest(user string) []Auth { return []Auth{{"digest", user + ":" + secret}} }

func TestAuth(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		proxy, dir := zktest.Proxy(t, s.Addr()), s.Path(t)
		cfg := log.config(t, Config{Servers: proxy.Addr(), Auth: digest("a"), ACL: CreatorAll()})
		u := newUser(t, connected(t, cfg))
		node := u.created(dir, "n-").GetNode()
		if _, _, err := s.Client(t).Get(dir); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a client without credentials reads %s: %v", dir, err)
		}
		other := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr(), Auth: digest("b")})))
		other.create(dir, "n-")
		m := next[*messages.Failed](other)
		if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "CREATE is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		both := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr(), Auth: append(digest("b"), digest("a")...)})))
		both.release(dir, both.created(dir, "n-").GetNode())
		next[*messages.NodeReleased](both)

		u.subscribe()
		epoch := u.epoch() // above 1 if a slow machine has cut off attempts to open a session
		proxy.Cut()        // it authenticates again
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		u.release(dir, node)
		next[*messages.NodeReleased](u)
		u.created(dir, "n-")
		if u.epoch() != epoch {
			t.Errorf("in epoch %d after epoch %d", u.epoch(), epoch)
		}
	})
}

func TestAuthRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		b := open(t, log.config(t, Config{Servers: s.Addr(), Auth: []Auth{{"nonsense", secret}}}))
		err := b.Connected(within(t))
		if !errors.Is(err, messages.Reason_NO_AUTH) || !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), `"nonsense"`) {
			t.Errorf("%v", err)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("shows the secret: %v", err)
		}
		must(t, b.Close())
	})
}

// The servers refuse credentials that they have accepted before.
func TestAuthRefusedLater(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		var wrongScheme atomic.Bool // of the credentials that the server gets
		d := testDialer{onMessage: func(message []byte) {
			if i := bytes.Index(message, []byte("digest")); i >= 0 && wrongScheme.Load() {
				copy(message[i:], "tsegid")
			}
		}}
		proxy, dir := zktest.Proxy(t, s.Addr()), s.Path(t)
		b := connected(t, log.config(t, Config{Servers: proxy.Addr(), Auth: digest("a"), Dial: d.Dial}))
		u := newUser(t, b)
		u.created(dir, "n-")
		u.subscribe()
		wrongScheme.Store(true)
		proxy.Cut()
		if m := u.waitState(messages.SessionState_LOST); !strings.Contains(m.GetDetail(), "refuses the credentials") {
			t.Errorf("%v", m)
		}
		const logged = "level=ERROR msg=\"server refuses the bridge's credentials\""
		zktest.Eventually(t, timeLimit, func() bool { return strings.Count(log.String(), logged) >= 2 }, "it tries again")
		wrongScheme.Store(false)
		u.waitState(messages.SessionState_CONNECTED)
		u.created(dir, "n-")
		must(t, b.Close())
	})
}

// Connections that fail during the authentication are replaced.
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
	u.waitState(messages.SessionState_CONNECTED)
	node := u.created("/d", "n-").GetNode()
	fault := s.Inject(embedded.Fault{Op: embedded.OpAuth, Times: 3, Action: action})
	s.DropConnections()
	for range 10 {
		u.create("/d", "more-")
	}
	u.waitState(messages.SessionState_CONNECTED)
	for range 10 {
		next[*messages.Created](u)
	}
	u.release("/d", node)
	next[*messages.NodeReleased](u)
	if n := len(fault.Firings()); n != 3 || u.epoch() != 1 {
		t.Errorf("%d failed, epoch %d", n, u.epoch())
	}
}

// A server that takes longer for the login than an attempt may take opens one session: the next
// attempts resume it, and take longer.
func TestAuthIsSlow(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
		s.Inject(embedded.Fault{Op: embedded.OpAuth, Times: -1, Action: embedded.DelayReply, Delay: 2500 * time.Millisecond})
		b := open(t, Config{Servers: "embedded:1", Dial: s.Dial, Auth: digest("a"), ACL: CreatorAll()})
		must(t, b.Connected(within(t)))
		u := newUser(t, b)
		u.created("/d", "n-")
		if n := len(s.Sessions()); n != 1 || b.Session().Epoch != 1 {
			t.Errorf("epoch %d, %d sessions on the server", b.Session().Epoch, n)
		}
		must(t, b.Close())
		<-b.ended
	})
}

// An attempt to connect ends if the server answers the handshake and nothing after it.
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
	var log bridgeLog
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", cfg.Auth, "one", cfg.Auth[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "auth", cfg.Auth, "one", cfg.Auth[0], "cfg", cfg)
	all := fmt.Sprintf("%v %+v %#v %s %q %s", cfg, cfg, cfg, cfg.Auth, cfg.Auth, text) + log.String()
	_, err = Config{Servers: "a", Auth: []Auth{{"digest", secret}}}.check()
	if all += err.Error(); strings.Contains(all, secret) || !strings.Contains(all, "digest:(secret)") {
		t.Error(all)
	}
}

// The failure of a request names the right that is missing, and the node.
func TestRightsAreNamed(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		for _, c := range []struct {
			right int32
			below string
			want  string
		}{
			{zk.PermCreate, "", "CREATE is not granted on "},
			{zk.PermCreate, "/below", "CREATE is not granted on "},
			{zk.PermCreate | zk.PermWrite, "", "CREATE is not granted on "},
		} {
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
			_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^c.right))
			must(t, err)
			u.create(dir+c.below, "n-")
			m := next[*messages.Failed](u)
			if m.GetReason() != messages.Reason_NO_AUTH || !strings.HasSuffix(m.GetDetail(), c.want+dir) {
				t.Errorf("%+v: %v", c, m)
			}
		}
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		node := u.created(dir, "n-").GetNode()
		setRights(t, s.Client(t), dir, zk.PermAll&^zk.PermRead)
		setRights(t, s.Client(t), dir+"/"+node, zk.PermAll&^zk.PermRead)
		u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: dir}, u)
		if m := next[*messages.Failed](u); !strings.HasSuffix(m.GetDetail(), "READ is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		u.bridge.Ref().SendWatch(&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}}, u)
		if m := next[*messages.Failed](u); !strings.HasSuffix(m.GetDetail(), "READ is not granted on "+dir+"/"+node) {
			t.Errorf("%v", m)
		}
	})
}

// Errors about the chroot show paths as ZooKeeper knows them: the chroot, and the node on which a
// right is missing.
func TestRightsAtTheChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		conn, top := s.Client(t), s.Path(t)
		_, err := conn.Create(top, nil, 0, zk.WorldACL(zk.PermRead))
		must(t, err)
		for _, c := range []struct{ chroot, made, lacks string }{
			{top + "/app", "make chroot " + top + "/app", top},
			{top + "/b/app", "make directory " + top + "/b, above the chroot " + top + "/b/app", top},
			{top, "make directory " + top + "/locks", top},
		} {
			var log bridgeLog
			u := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr() + c.chroot})))
			u.refused(u.create("/locks/orders", "n-"), messages.Reason_NO_AUTH, c.made+": ", "CREATE is not granted on "+c.lacks)
			if text := log.String(); !strings.Contains(text, "there is no session node") || !strings.Contains(text, "CREATE is not granted on "+c.lacks) {
				t.Errorf("logged: %s", text)
			}
		}
	})
}
