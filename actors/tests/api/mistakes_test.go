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

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The likely mistakes of a new user, each with an error that names the mistake and says how to mend
// it.

// The mistakes in Connect.
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

// A chroot that does not exist is made, and the log says so.
func TestMissingChroot(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
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

// The mistakes with a lock.
func TestLockMistakes(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		locktest.Must(b, conn.AddAuth("digest", []byte("owner:secret")))
		theirs := b.LockPath + "-theirs"
		_, err := conn.Create(theirs, nil, 0, zk.AuthACL(zk.PermAll))
		locktest.Must(b, err)
		defer conn.Delete(theirs, -1)
		locks := b.Locks()
		mu := locks.Mutex(b.LockPath)
		check := func(err, class error, text string) {
			b.Helper()
			locktest.Is(b, err, class)
			if err == nil || !strings.Contains(err.Error(), text) {
				b.Errorf("the error does not say %q: %v", text, err)
			}
		}
		_, err = locks.Mutex("orders").Lock(locktest.Within(b))
		check(err, actors.ErrInvalid, `lock path "orders" must begin with /`)
		_, err = locks.Mutex(theirs).Lock(locktest.Within(b))
		check(err, actors.ErrNoAuth, "CREATE is not granted on "+theirs)

		grant := locktest.Lock(b, mu)
		_, err = locks.Semaphore(b.LockPath, 2).Lock(locktest.Within(b))
		check(err, actors.ErrInvalid, "it is in use as a mutex, and asked for as a semaphore of 2")
		_, err = mu.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
		check(err, actors.ErrTimedOut, b.LockPath+": after 50ms")
		locktest.Unlock(b, grant)
		check(grant.Unlock(locktest.Within(b)), actors.ErrNotHeld, b.LockPath+" was released before")

		locktest.Must(b, locks.Close())
		_, err = mu.Lock(locktest.Within(b))
		check(err, actors.ErrClosed, "closed")
	})
}

// The log has the path and the owner of a grant that is dropped without a release.
func TestForgottenRelease(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var logged locktest.Log
	locks := locktest.Connect(t, s.Addr(), logged.Config)
	func() { locktest.Lock(t, locks.Mutex("/orders"), actors.WithOwner("billing")) }()
	locktest.CollectUntil(t, func() bool {
		lines := logged.With("grant was dropped without Release")
		return len(lines) == 1 && strings.Contains(lines[0], "path=/orders") && strings.Contains(lines[0], "owner=billing")
	}, "the log has the dropped grant")
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
