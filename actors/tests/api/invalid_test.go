package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestInvalidPath(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		before := append(s.Nodes(t, "/"), "actorlock")
		for _, path := range []string{"", "/", "relative", "relative/path", "//", "//a", "/a//b", "/a/", "/.", "/..", "/a/./b",
			"/a/../b", "/a/..", "/a\x00b", "/a\nb", "/a\x1fb", "/a\x7fb", "/a\u0085b", "/a\ud7ff\ufff0b", "/a\xffb", "/actorlock/generation"} {
			mu := locks.Mutex(path)
			if mu.Path() != path {
				t.Errorf("path %q is %q", path, mu.Path())
			}
			_, err := mu.Lock(locktest.Within(t))
			f := mu.Acquire(locktest.Within(t), actors.Try())
			_, again := f.Result()
			_, pid := mu.PID()
			for _, err := range []error{err, again, pid} {
				locktest.ExpectClear(t, err, path)
			}
		}
		for _, name := range s.Nodes(t, "/") { // empty containers of other tests may have gone
			if !slices.Contains(before, name) {
				t.Errorf("/%s was created", name)
			}
		}
	})
}

func TestInvalidOptions(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		mu := locks.Mutex(s.Path(t))
		for _, test := range []struct {
			value  string
			option actors.Option
		}{
			{"0s", actors.WithTimeout(0)},
			{"-1s", actors.WithTimeout(-time.Second)},
			{"owner", actors.WithOwner("")},
		} {
			_, err := mu.Lock(locktest.Within(t), test.option)
			locktest.ExpectClear(t, err, test.value)
			_, err = mu.Acquire(locktest.Within(t), actors.Try(), test.option).Result()
			locktest.ExpectClear(t, err, test.value)
		}
		//lint:ignore SA1012 on purpose
		_, err := mu.Lock(nil) //nolint:staticcheck
		locktest.ExpectClear(t, err, "nil")
		why := errors.New("ended before")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		begun := time.Now()
		_, err = mu.Lock(ended)
		locktest.Is(t, err, why)
		if err == nil || !strings.Contains(err.Error(), mu.Path()) {
			t.Errorf("the error does not name the path: %v", err)
		}
		past, cancel2 := context.WithDeadline(t.Context(), begun.Add(-time.Hour))
		defer cancel2()
		_, err = mu.Acquire(past).Result()
		locktest.Is(t, err, context.DeadlineExceeded)
		if nodes := s.Nodes(t, "/"); len(nodes) > 0 && strings.Contains(strings.Join(nodes, " "), mu.Path()[1:]) {
			t.Errorf("created: %v", nodes)
		}
		// These options are accepted.
		locktest.Unlock(t, locktest.Lock(t, mu, actors.WithTimeout(time.Nanosecond+zktest.TimeLimit), actors.WithData(nil), actors.WithOwner("a/b \x00 ü")))
		locktest.Unlock(t, locktest.Lock(t, mu, actors.WithTimeout(1<<63-1)))
	})
}

// The limit of an owner's name is that of no other value, and the error does not have the name. All
// recipes have it.
func TestOwnerTooLong(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		for _, r := range locktest.Recipes {
			for size, accepted := range map[int]bool{1 << 10: true, 1<<10 + 1: false, 700_000: false} {
				g, err := v.HandleOf(locks, r).Lock(locktest.Within(v), actors.WithOwner(actors.Owner(strings.Repeat("x", size))))
				if accepted {
					locktest.Must(v, err)
					locktest.Unlock(v, g)
					continue
				}
				locktest.ExpectClear(v.T, err, fmt.Sprint(size))
				if err != nil && len(err.Error()) > 500 {
					v.Errorf("%s: an error of %d bytes: %.100s", r.Name, len(err.Error()), err.Error())
				}
			}
		}
		v.WaitNoNode()
		locktest.Must(v, locks.Close())
	})
}

func TestTooMuchData(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		fits := make([]byte, 500<<10)
		g := locktest.Lock(b, mu, actors.WithData(fits))
		waiting := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		for _, size := range []int{512<<10 + 1, 1 << 20, 10 << 20} {
			_, err := mu.Lock(locktest.Within(b), actors.WithData(make([]byte, size)))
			locktest.ExpectClear(b.T, err, "limit")
		}
		locktest.Pending(b, waiting)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, waiting))
	})
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
		{"space", "a:1, b:2", " b:2", actors.Config{}},
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
		for timeout, granted := range map[time.Duration]string{150 * time.Millisecond: "400ms", 2 * time.Hour: "1m0s"} {
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
