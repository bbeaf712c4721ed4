package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The likely mistakes of a new user in Connect, each with an error that names the mistake and says
// how to mend it.
func TestConnectMistakes(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		var all sync.WaitGroup
		for _, test := range []struct {
			name string
			addr string
			cfg  actors.Config
			want string
		}{
			{"no server", closedPort(t), actors.Config{}, "connection refused: check that ZooKeeper runs there, and that the port is its clientPort"},
			{"no servers named", "", actors.Config{}, `it must name a server, as in "host:2181"`},
			{"semicolons", "zk1:2181;zk2:2181", actors.Config{}, "commas separate servers"},
			{"a web server", webServer(t, false), actors.Config{}, "ZooKeeper is slow or overloaded, or something else listens at the port, which should be ZooKeeper's clientPort"},
			{"an SSH port", greetingServer(t, "SSH-2.0-OpenSSH_9.2\r\n"), actors.Config{}, "an SSH server answers: check that the port is ZooKeeper's clientPort"},
			{"a TLS port", webServer(t, true), actors.Config{}, "one whose port is for TLS (set Config.TLS)"},
			{"TLS to a plain port", s.Addr(), actors.Config{TLS: &tls.Config{}}, "check that the port is ZooKeeper's secureClientPort"},
			{"an unknown authority", webServer(t, true), actors.Config{TLS: &tls.Config{}}, "set TLS.RootCAs to the authority of the servers' certificates"},
			{"a session timeout out of range", s.Addr(), actors.Config{SessionTimeout: 10 * time.Hour}, "which the server's minSessionTimeout and maxSessionTimeout allow"},
			{"a session timeout of a moment", s.Addr(), actors.Config{SessionTimeout: time.Millisecond}, "it must be from 100ms to"},
			{"an unknown scheme", s.Addr(), actors.Config{Auth: []zkbridge.Auth{{Scheme: "digset", Credential: "a:b"}}}, `the server refuses the credentials of scheme "digset"`},
		} {
			all.Go(func() { // not a subtest: each waits for three seconds, and for longer if that was too short
				var err error
				for limit := 3 * time.Second; limit < zktest.TimeLimit; limit *= 3 {
					if err = connectError(t, limit, test.addr, test.cfg); strings.Contains(err.Error(), test.want) &&
						(strings.Contains(err.Error(), test.addr) || !errors.Is(err, context.DeadlineExceeded)) {
						return
					}
				}
				t.Errorf("%s: the error does not say %q, or not of which server:\n%v", test.name, test.want, err)
			})
		}
		all.Wait()
	})
}

// connectError returns the error of a Connect that must fail within a limit.
func connectError(t *testing.T, limit time.Duration, addr string, cfg actors.Config) error {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	locks, err := actors.Connect(ctx, addr, cfg)
	if err != nil {
		return err
	}
	locks.Close()
	return fmt.Errorf("Connect to %s succeeds", addr)
}

// A chroot that does not exist is made, and the log says so, unless RequireChroot is set.
func TestMissingChroot(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		if _, err := actors.Connect(locktest.Within(b), b.Addr()+b.LockPath, actors.Config{RequireChroot: true}); !errors.Is(err, zkbridge.ErrNoChroot) {
			b.Errorf("connected to a missing chroot: %v", err)
		}
		var logged locktest.Log
		locks, err := actors.Connect(locktest.Within(b), b.Addr()+b.LockPath, actors.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		locktest.Must(b, err)
		defer locks.Close()
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex("/orders")))
		if len(logged.With("the chroot was missing and is made")) == 0 {
			b.Errorf("the log has %v", logged.With(""))
		}
	})
}

// closedPort returns an address at which no server listens: a client has the port until the test
// ends.
func closedPort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.Must(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	locktest.Must(t, err)
	t.Cleanup(func() { client.Close() })
	return client.LocalAddr().String()
}

func webServer(t *testing.T, secure bool) string {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// greetingServer returns the address of a server that sends the first message, as SSH and mail
// servers do.
func greetingServer(t *testing.T, text string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte(text))
			defer conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func TestInvalidConfig(t *testing.T) {
	for _, test := range []struct {
		name, servers, value string
		cfg                  actors.Config
	}{
		{"no servers", "", "Servers", actors.Config{}},
		{"blank servers", " ", "Servers", actors.Config{}},
		{"missing server", "a:1,,b:2", "a:1,,b:2", actors.Config{}},
		{"no port", "host:", `""`, actors.Config{}},
		{"port 0", "host:0", `"0"`, actors.Config{}},
		{"big port", "host:65536", "65536", actors.Config{}},
		{"named port", "host:zookeeper", "zookeeper", actors.Config{}},
		{"no host", ":2181", ":2181", actors.Config{}},
		{"space", "a:1, b c:2", " b c:2", actors.Config{}},
		{"chroot", "a:1/app/", "/app/", actors.Config{}},
		{"url", "http://a:1", "http://a:1", actors.Config{}},
		{"IPv6 without brackets", "::1:2181", "::1:2181", actors.Config{}},
		{"negative session", "a:1", "-1s", actors.Config{SessionTimeout: -time.Second}},
		{"short session", "a:1", "1ms", actors.Config{SessionTimeout: time.Millisecond}},
		{"long session", "a:1", "10000h", actors.Config{SessionTimeout: 10000 * time.Hour}},
		{"negative connect", "a:1", "-1ns", actors.Config{ConnectTimeout: -1}},
		{"negative margin", "a:1", "-1ns", actors.Config{Margin: -1}},
		{"wide margin", "a:1", "10.001s", actors.Config{Margin: 10001 * time.Millisecond}},
		{"negative idle", "a:1", "-1ns", actors.Config{IdleTimeout: -1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				t.Error("a connection is opened")
				return nil, errors.New("unexpected")
			}
			locks, err := actors.Connect(t.Context(), test.servers, test.cfg)
			if locks != nil {
				t.Error("locks with an error")
				locks.Close()
			}
			locktest.ExpectClear(t, err, test.value)
		})
	}
	_, err := actors.Connect(nil, "a:1", actors.Config{}) //lint:ignore SA1012 a nil context is what is tested
	locktest.ExpectClear(t, err, "nil")
}

func TestSessionTimeoutNotGranted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		for timeout, granted := range map[time.Duration]string{150 * time.Millisecond: "400ms", 2 * time.Hour: "maxSessionTimeout"} {
			locks, err := actors.Connect(locktest.Within(t), s.Addr(), actors.Config{SessionTimeout: timeout})
			locktest.Is(t, err, zkbridge.ErrSessionTimeout)
			if locks != nil {
				t.Error("locks with an error")
			}
			for _, want := range []string{timeout.String(), granted} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %s: %v", want, err)
				}
			}
		}
	})
}

// Connect returns at the caller's deadline if the server refuses, is silent or does not exist.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.Must(t, err)
	defer silent.Close()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.Must(t, err)
	refused := refusing.Addr().String()
	refusing.Close()
	for name, addr := range map[string]string{"refused": refused, "silent": silent.Addr().String(), "no such host": "host.invalid:1"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			locks, err := actors.Connect(ctx, addr, actors.Config{SessionTimeout: 10 * time.Second})
			if locks != nil {
				t.Error("locks with an error")
			}
			locktest.Is(t, err, context.DeadlineExceeded)
			if err == nil || !strings.Contains(err.Error(), addr) {
				t.Errorf("the error does not name the server: %v", err)
			}
		})
	}
}

// Connect returns when its context ends, whether servers refuse, accept and never answer, or the
// dial itself hangs. Connect first ends the client library, which may wait a second for the end of
// its session.
func TestUnreachableInTime(t *testing.T) {
	t.Parallel()
	dials := map[string]func(ctx context.Context) (net.Conn, error){
		"refused": func(context.Context) (net.Conn, error) { return nil, errors.New("refused") },
		"silent": func(ctx context.Context) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server) // until the client closes
			return client, nil
		},
		"hanging": func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				const limit = 300 * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begun := time.Now()
				_, err := actors.Connect(ctx, "silent:1", actors.Config{SessionTimeout: 10 * time.Second,
					Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }})
				locktest.Is(t, err, context.DeadlineExceeded)
				if took := time.Since(begun); took != limit && took != limit+time.Second {
					t.Errorf("Connect has returned after %v, not %v", took, limit)
				}
			})
		})
	}
}

func TestConnectEndedContext(t *testing.T) {
	s := zktest.Embedded(t)
	why := errors.New("ended before")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	locks, err := actors.Connect(ctx, s.Addr(), actors.Config{SessionTimeout: locktest.SessionTimeout})
	if err == nil {
		locks.Close()
	}
	locktest.Is(t, err, why)
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return len(s.Embedded().Sessions()) == 0 }, "no session is left")
}

// The grants outlive a change of the servers. A list that is not acceptable changes nothing.
func TestSetServers(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption()
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		locktest.Is(b, locks.SetServers("localhost:1/app"), actors.ErrInvalid)
		host, port, err := net.SplitHostPort(b.Addr())
		locktest.Must(b, err)
		if host != "127.0.0.1" {
			b.Fatalf("the server is at %s", host)
		}
		locktest.Must(b, locks.SetServers("localhost:"+port)) // the same server by another name
		next := locks.RWMutex(b.LockPath + "-other").Write()
		locktest.Unlock(b, locktest.Lock(b, next))
		if err := g.Err(); err != nil || locks.Session().Epoch != 1 {
			b.Errorf("the grant has ended: %v", err)
		}
		locktest.Unlock(b, g)
	})
}
