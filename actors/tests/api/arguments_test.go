package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
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

// A request whose context has ended before is refused, and makes nothing.
func TestEndedContext(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		mu := locks.Mutex(s.Path(t))
		why := errors.New("ended before")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		begun := time.Now()
		_, err := mu.Lock(ended)
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
