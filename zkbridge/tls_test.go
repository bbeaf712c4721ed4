package zkbridge

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// secureServers calls f with the secure ports of both servers, which ask clients for a certificate.
// s is nil for the embedded server.
func secureServers(t *testing.T, a *zktest.Authority, f func(t *testing.T, s *zktest.Server, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Issue("server")},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()})
		must(t, err)
		embedded.Run(t, embedded.ServerConfig{Listener: l, TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute})
		f(t, nil, strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1))
	})
	t.Run("zookeeper", func(t *testing.T) {
		addr, settings := a.SecureSettings()
		f(t, zktest.Own(t, settings...), addr)
	})
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := zktest.NewAuthority(t)
	mutual := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Issue("client")}}
	secureServers(t, a, func(t *testing.T, s *zktest.Server, addr string) {
		var log bridgeLog
		b := connected(t, log.config(t, Config{Servers: addr, TLS: mutual, Auth: digest("a")}))
		u := newUser(t, b)
		node := u.created("/tls", "n-").GetNode()
		u.watch("/tls", node)
		u.release("/tls", node)
		next[*messages.Wake](u)
		next[*messages.NodeReleased](u)
		must(t, b.Close())
		if mutual.ServerName != "" {
			t.Errorf("the user's configuration was changed")
		}
		for _, c := range []struct {
			name string
			cfg  *tls.Config
			want string
		}{
			{"no client certificate", &tls.Config{RootCAs: a.Pool()}, "certificate"},
			{"another authority", &tls.Config{RootCAs: zktest.NewAuthority(t).Pool()}, "certificate signed by unknown authority"},
			{"another name", &tls.Config{RootCAs: a.Pool(), Certificates: mutual.Certificates, ServerName: "elsewhere"}, "elsewhere"},
			{"no TLS", nil, "handshake with"},
		} {
			b := open(t, Config{Servers: addr, TLS: c.cfg, ConnectTimeout: timeLimit})
			waitConnectError(t, b, c.want)
			if b.Session().Epoch != 0 {
				t.Errorf("%s: connected", c.name)
			}
			if c.name == "no client certificate" { // soon
				if err := b.Connected(within(t)); !errors.Is(err, messages.Reason_NO_AUTH) || !strings.Contains(err.Error(), "set Config.TLS.Certificates") {
					t.Errorf("%v", err)
				}
			}
		}
		if s != nil { // the certificate identifies the client
			u := newUser(t, connected(t, Config{Servers: addr, TLS: mutual, ACL: CreatorAll()}))
			u.created("/x509", "n-")
			if _, _, err := s.Client(t).Get("/x509"); err == nil {
				t.Error("a client without the certificate reads /x509")
			}
		}
	})
}

// The error names what is behind a port without TLS.
func TestNoTLSBehindPort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sends, want string }{
		{"", "the server has not answered yet: it is slow or overloaded, or the port is not ZooKeeper's secureClientPort"},
		{"hang up", "the server hangs up, as it does on a port without TLS, and with as many connections"},
		{"HTTP/1.1 400 Bad Request\r\n", "an HTTP server answers: check that the port"},
		{"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server answers: check that the port"},
		{"hello", "a server without TLS answers: check that the port"},
	} {
		dial := textServer(c.sends)
		if c.sends == "hang up" {
			dial = pipeDialer(func(conn net.Conn) { conn.Read(make([]byte, 10_000)) }) // the whole ClientHello
		}
		zktest.Bubble(t, func(t *testing.T) {
			b := open(t, Config{Servers: "port:1", SessionTimeout: time.Second, ConnectTimeout: 50 * time.Millisecond, TLS: &tls.Config{},
				Dial: dial})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Connected(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v", c.sends, err)
			}
		})
	}
}

// An attempt to connect ends if the server accepts the connection and does not answer the TLS
// handshake.
func TestTLSHangs(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		b := open(t, Config{Servers: "port:1", SessionTimeout: time.Second, ConnectTimeout: 50 * time.Millisecond, TLS: &tls.Config{},
			Dial: silentServer})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "TLS with port:1") {
			t.Errorf("%v", err)
		}
	})
}

// The bridge keeps a copy of the TLS configuration: the caller may change its own.
func TestTLSIsCopied(t *testing.T) {
	t.Parallel()
	mine := &tls.Config{ServerName: "zk"}
	s, err := Config{Servers: "zk", TLS: mine}.check()
	must(t, err)
	mine.ServerName = "other"
	if s.TLS.ServerName != "zk" {
		t.Error("a later change counts")
	}
}
