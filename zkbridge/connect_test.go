package zkbridge

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestUnreachable(t *testing.T) {
	t.Parallel()
	b := open(t, Config{Servers: "127.0.0.1:1,localhost:1", ConnectTimeout: timeLimit})
	waitConnectError(t, b, "refused")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	err := b.Connected(ctx)
	for _, part := range []string{"127.0.0.1:1,localhost:1", "enough", "refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("%v does not wrap the cause", err)
	}
	checkClose(t, b, true)
}

// A server whose name does not resolve does not keep the bridge from the others.
func TestUnknownName(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	connected(t, Config{Servers: "no-such-host.invalid:2181," + s.Addr()})
}

// A server that accepts a connection and answers nothing, or not enough, fails the attempt.
func TestIncompleteHandshake(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\x00\x00\x00\x25", "\x00\x00\x00\x25abc", "HTTP/1.1 400 Bad Request\r\n"} {
		zktest.Bubble(t, func(t *testing.T) {
			var dials atomic.Int32
			b := open(t, Config{Servers: "port:1", SessionTimeout: time.Second, ConnectTimeout: 100 * time.Millisecond,
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					return textServer(text)(ctx, network, address)
				}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "handshake with pipe") {
				t.Errorf("%q: %v", text, err)
			}
			if n := dials.Load(); n < 2 {
				t.Errorf("%q: %d attempts", text, n)
			}
			checkClose(t, b, true)
		})
	}
}

// A server with as many connections as it allows hangs up on the next one, and the error says so.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := zktest.Own(t, zktest.Setting("maxClientCnxns", "2"))
	for range 2 {
		connected(t, Config{Servers: s.Addr()})
	}
	waitConnectError(t, open(t, Config{Servers: s.Addr()}), "maxClientCnxns")
}

// The error names what is behind a port that accepts connections, also before an attempt has
// failed.
func TestNoZooKeeperBehindPort(t *testing.T) {
	t.Parallel()
	const port = ": check that the port is ZooKeeper's clientPort"
	for _, c := range []struct{ sends, want string }{
		{"", "it accepts connections and has not answered yet: ZooKeeper is slow or overloaded, or something else"},
		{"HTTP/1.1 400 Bad Request\r\n", "an HTTP server answers" + port},
		{"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server answers" + port},
		{"-ERR unknown command\r\n", "a Redis server answers" + port},
		{"-NOAUTH Authentication required.\r\n", "a Redis server answers" + port},
		{"220 mail ready\r\n", "a mail or FTP server answers" + port},
		{"\x15\x03\x01\x00\x02\x02\x50", "the port accepts TLS only: set Config.TLS"},                 // an alert
		{"J\x00\x00\x00\x0a8.0.36\x00", "it answers, but not as ZooKeeper" + port + " (a message of"}, // MySQL
		{"hang up", "hangs up, as a ZooKeeper server does that has no quorum at present, or as many connections of this address as its maxClientCnxns allows"},
	} {
		dial := textServer(c.sends)
		if c.sends == "hang up" {
			dial = pipeDialer(func(conn net.Conn) { io.ReadFull(conn, make([]byte, 48)) })
		}
		for _, limit := range []time.Duration{time.Second, time.Minute} {
			zktest.Bubble(t, func(t *testing.T) {
				b := open(t, Config{Servers: "port:1", SessionTimeout: 20 * time.Second, Dial: dial})
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if err := b.Connected(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%q: %v", c.sends, err)
				}
			})
		}
	}
}

func TestOtherTimeoutGranted(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b := open(t, Config{Servers: s.Addr(), SessionTimeout: 101 * time.Millisecond})
		ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
		defer cancel()
		err := b.Connected(ctx)
		if !errors.Is(err, ErrSessionTimeout) || !strings.Contains(err.Error(), "101ms") || !strings.Contains(err.Error(), "400ms") {
			t.Errorf("%v", err)
		}
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked again: %v", err)
		}
		b.Close()
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked after Close: %v", err)
		}
	})
}

// The connect request has the newest zxid that the bridge has seen: a server that lags behind refuses
// the session then.
func TestConnectRequestHasTheNewestZxid(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		zxids := make(chan int64, 10)
		proxy := zktest.Proxy(t, s.Addr())
		d := testDialer{onMessage: func(message []byte) {
			if len(message) > 40 && binary.BigEndian.Uint32(message[4:]) == 0 { // protocol version: a handshake
				zxids <- int64(binary.BigEndian.Uint64(message[8:]))
			}
		}}
		u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr(), Dial: d.Dial})), s.Path(t)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		czxid := u.created(dir, "n-").GetCzxid()
		for len(zxids) > 0 { // more than one if a slow machine has cut off attempts to connect
			if zxid := <-zxids; zxid != 0 {
				t.Errorf("the first connect request has the zxid %d", zxid)
			}
		}
		proxy.Cut()
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		// It is greater if another test beside this one has written, and the bridge has read.
		if zxid := <-zxids; zxid < czxid {
			t.Errorf("the zxid is %d, less than %d", zxid, czxid)
		}
	})
}

// The attempt after an unanswered handshake begins a second later, whatever the ConnectTimeout.
func TestUnansweredHandshake(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, ConnectTimeout: 10 * time.Second, Dial: s.Dial}))
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		time.Sleep(time.Minute)
		s.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole})
		s.DropConnections()
		begun := time.Now()
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		if took := time.Since(begun); took < time.Second || took > 2*time.Second {
			t.Errorf("connected again after %v", took)
		}
		u.bridge.Close()
		<-u.bridge.ended
	})
}

// A server that does not answer behind its port does not keep a bridge from the other addresses of
// the name, and a name server that does not answer only delays the bridge.
func TestDeadServerOfAName(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
		settings, err := Config{Servers: "zk.test", SessionTimeout: 20 * time.Second}.check()
		must(t, err)
		settings.Resolver.Lookup = func(ctx context.Context, _ string) ([]string, error) {
			select {
			case <-time.After(7 * time.Second): // the first name server is dead
				return []string{"dead", "alive"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		settings.Resolver.DialIP = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "alive:2181" {
				return s.Dial(ctx, network, address)
			}
			return silentServer(ctx, network, address)
		}
		system := host.NewSystem(nil, nil)
		b, err := start(system, settings)
		must(t, err)
		must(t, b.Connected(within(t)))
		u := newUser(t, b.Internals())
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		s.DropConnections() // without another lookup that ends in time
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		must(t, b.Close())
		<-b.ended
		system.Close()
	})
}

// The bridge leaves a server that is not in the list any more, and keeps the session.
func TestSetServers(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
		var mu sync.Mutex
		var last string // dialed
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			last = address
			mu.Unlock()
			return s.Dial(ctx, network, address)
		}
		b := connected(t, Config{Servers: "a,b/app", SessionTimeout: 20 * time.Second, Dial: dial})
		u := newUser(t, b)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		session := b.Session().ID
		node := u.created("/d", "n-").GetNode()
		for list, part := range map[string]string{"": "empty", "c,d": `chroot ""`, "c,d/other": `"/app"`, "c:x/app": `"x"`} {
			if err := b.SetServers(list); err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v", list, err)
			}
		}
		must(t, b.SetServers("a, b, c/app"))
		<-time.After(time.Second)
		if state := b.Session().State; state != messages.SessionState_CONNECTED {
			t.Errorf("%v, though the server is in the list", state)
		}
		must(t, b.SetServers("c,d/app"))
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		mu.Lock()
		if last != "c:2181" && last != "d:2181" {
			t.Errorf("connected to %s", last)
		}
		mu.Unlock()
		if now := b.Session().ID; now != session || !slices.Equal(u.list("/d"), []string{node}) {
			t.Errorf("session %#x, then %#x with %v", session, now, u.list("/d"))
		}
	})
}

// The bridge leaves a server that is replaced while it is dialed, or before the session is resumed.
func TestSetServersWhileConnecting(t *testing.T) {
	t.Parallel()
	for name, handshake := range map[string]time.Duration{"dialing": 0, "handshake": 500 * time.Millisecond} {
		zktest.Bubble(t, func(t *testing.T) {
			s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
			var last atomic.Value // the address of the connection opened last
			var slow atomic.Bool
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				if slow.Load() && address == "a:2181" && handshake == 0 {
					<-time.After(500 * time.Millisecond)
				}
				last.Store(address)
				return s.Dial(ctx, network, address)
			}
			b := connected(t, Config{Servers: "a", SessionTimeout: 20 * time.Second, Dial: dial})
			u := newUser(t, b)
			u.subscribe()
			u.waitState(messages.SessionState_CONNECTED)
			session := b.Session().ID
			<-time.After(time.Minute)
			slow.Store(true)
			if handshake > 0 {
				s.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.DelayReply, Delay: handshake})
			}
			s.DropConnections()
			u.waitState(messages.SessionState_SUSPENDED)
			<-time.After(100 * time.Millisecond)
			must(t, b.SetServers("b,b"))
			u.waitState(messages.SessionState_CONNECTED)
			<-time.After(time.Second)
			if now := b.Session(); last.Load() != "b:2181" || now.ID != session || now.State != messages.SessionState_CONNECTED {
				t.Errorf("%s: connected to %v, session %#x, then %v", name, last.Load(), session, now)
			}
		})
	}
}

// The members of an ensemble change: what remains are others than those that the bridge began with.
func TestSetServersOfEnsemble(t *testing.T) {
	t.Parallel()
	zktest.OneRunIn(t, 3)
	s := zktest.Ensemble(t, 3)
	members := s.Members()
	b := connected(t, Config{Servers: members[0].Addr()})
	u := newUser(t, b)
	session, node := b.Session().ID, u.created("/d", "n-").GetNode()
	must(t, b.SetServers(members[1].Addr()+","+members[2].Addr()))
	members[0].Stop(t)
	u.release("/d", u.created("/d", "n-").GetNode())
	next[*messages.NodeReleased](u)
	if now := b.Session().ID; now != session || !slices.Equal(u.list("/d"), []string{node}) {
		t.Errorf("session %#x, then %#x with %v", session, now, u.list("/d"))
	}
}
