package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// policy refuses a path and all below it, and remembers what it was asked for.
type policy struct {
	refused string

	mu    sync.Mutex
	asked map[string]bool // verb and path
}

var errPolicy = errors.New("not yours")

func (p *policy) allow(_ remote.Peer, path string, verb remote.Verb) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = map[string]bool{}
	}
	p.asked[fmt.Sprint(verb, " ", path)] = true
	if path == p.refused || strings.HasPrefix(path, p.refused+"/") {
		return errPolicy
	}
	return nil
}

// Nothing that a client asks for touches, shows or names a lock that Allow refuses.
func TestAllowCoversAllPaths(t *testing.T) {
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		root := zk.Path(t)
		prod := root + "/prod"
		p := &policy{refused: prod + "/locks"}
		s := serve(t, zk.Addr(), remote.ServerConfig{Allow: p.allow})
		client, other := dial(t, s.addr), dial(t, s.addr) // one has a mutex where the other has a semaphore
		ctx := t.Context()
		secret := lockOf(t, s.locks.Mutex(prod+"/locks"))
		below := lockOf(t, s.locks.Mutex(prod+"/locks/more"))
		open := lockOf(t, s.locks.Mutex(prod+"/open"))
		lease := lockOf(t, s.locks.Semaphore(root+"/pool", 2)) // its leases are beside a refused request queue
		for what, ask := range map[string]func() error{
			"Acquire":   func() error { _, err := client.Mutex(prod + "/locks").Lock(ctx); return err },
			"semaphore": func() error { _, err := other.Semaphore(prod, 2).Lock(ctx); return err },
			"multi-lock": func() error {
				_, err := client.MultiLock(client.Mutex(root+"/x"), client.Mutex(prod+"/locks")).Lock(ctx)
				return err
			},
			"multi-lock 2": func() error {
				_, err := other.MultiLock(other.Mutex(root+"/x"), other.Semaphore(prod, 2)).Lock(ctx)
				return err
			},
			"number": func() error {
				_, err := client.Semaphore(root+"/y", 2, actors.SharedPermits(prod+"/locks/n")).Lock(ctx)
				return err
			},
			"Revoke":        func() error { _, err := client.Revoke(ctx, secret.Node(), 1); return err },
			"VerifyToken":   func() error { return client.VerifyToken(ctx, secret.Node(), secret.Token()) },
			"RevokeHolders": func() error { _, err := client.Mutex(prod+"/locks").RevokeHolders(ctx, 1); return err },
			"Participants":  func() error { _, err := client.Mutex(prod + "/locks").Participants(ctx); return err },
			"of semaphore":  func() error { _, err := client.Semaphore(prod, 2).Participants(ctx); return err },
			"Remaining":     func() error { _, err := client.Semaphore(prod, 2).Remaining(ctx); return err },
			"Inspect":       func() error { _, err := client.Inspect(ctx, prod+"/locks"); return err },
			"Observe":       func() error { return observed(ctx, client, prod+"/locks") },
			"Find":          func() error { _, err := client.FindLocks(ctx, prod+"/locks"); return err },
			"Get":           func() error { _, err := client.SharedCount(prod+"/locks/n", 0).Get(ctx); return err },
			"Set":           func() error { return client.SharedCount(prod+"/locks/n", 0).Set(ctx, 1) },
			"TrySet": func() error {
				_, err := client.SharedCount(prod+"/locks/n", 0).TrySet(ctx, actors.Count{}, 1)
				return err
			},
		} {
			if err := ask(); !errors.Is(err, actors.ErrNoAuth) || !strings.Contains(err.Error(), errPolicy.Error()) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := errors.Join(secret.Verify(ctx), below.Verify(ctx), client.VerifyToken(ctx, open.Node(), open.Token())); err != nil {
			t.Error(err)
		}
		found, err := client.FindLocks(ctx, root)
		if want := []string{root + "/pool", prod + "/open"}; err != nil || !slices.Equal(found, want) {
			t.Errorf("Find names %q, %v; want %q", found, err, want)
		}
		// A semaphore is shown only if its directories may be.
		p.mu.Lock()
		p.refused = root + "/pool/leases"
		p.mu.Unlock()
		if _, err := client.Inspect(ctx, root+"/pool"); !errors.Is(err, actors.ErrNoAuth) {
			t.Errorf("Inspect shows leases: %v", err)
		}
		if err := observed(ctx, client, root+"/pool"); !errors.Is(err, actors.ErrNoAuth) {
			t.Errorf("Observe shows leases: %v", err)
		}
		if found, err := client.FindLocks(ctx, root); err != nil || slices.Contains(found, root+"/pool") {
			t.Errorf("Find names %q, %v", found, err)
		}
		if _, err := client.Revoke(ctx, lease.Node(), 1); !errors.Is(err, actors.ErrNoAuth) || lease.Err() != nil {
			t.Errorf("Revoke of a lease: %v, %v", err, lease.Err())
		}
	})
}

// observed returns the error of the first queue.
func observed(ctx context.Context, locks *actors.Locks, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := <-locks.Observe(ctx, path)
	return q.Err
}

// Allow sees no path that is not acceptable.
func TestAllowSeesCheckedPaths(t *testing.T) {
	zk := zktest.Embedded(t)
	p := &policy{refused: "/none"}
	client := dial(t, serve(t, zk.Addr(), remote.ServerConfig{Allow: p.allow}).addr)
	ctx := t.Context()
	for _, path := range []string{"/" + strings.Repeat("x", 900<<10), "/" + strings.Repeat("x", 17<<10), "/prod/../etc", "/a\x00b", "relative", "/a//b", "/end/", ""} {
		node := path + "/_c_00000000-0000-0000-0000-000000000000-lock-0000000001"
		for what, ask := range map[string]func() error{
			"Acquire":     func() error { _, err := client.Mutex(path).Lock(ctx); return err },
			"multi-lock":  func() error { _, err := client.MultiLock(client.Mutex("/x"), client.Mutex(path)).Lock(ctx); return err },
			"number":      func() error { _, err := client.Semaphore("/y", 2, actors.SharedPermits(path)).Lock(ctx); return err },
			"Revoke":      func() error { _, err := client.Revoke(ctx, node, 1); return err },
			"VerifyToken": func() error { return client.VerifyToken(ctx, node, actors.Token{}) },
			"Holders":     func() error { _, err := client.Mutex(path).RevokeHolders(ctx, 1); return err },
			"Inspect":     func() error { _, err := client.Inspect(ctx, path); return err },
			"Observe":     func() error { return observed(ctx, client, path) },
			"Find":        func() error { _, err := client.FindLocks(ctx, path); return err },
			"Get":         func() error { _, err := client.SharedCount(path, 0).Get(ctx); return err },
			"Set":         func() error { return client.SharedCount(path, 0).Set(ctx, 1) },
		} {
			if err := ask(); !errors.Is(err, actors.ErrInvalid) {
				t.Errorf("%s of %.30q: %.200v", what, path, err)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for asked := range p.asked {
		t.Errorf("Allow was asked: %.60q", asked)
	}
}

// What Allow panics about fails, once. The client keeps what it holds and what it waits for, and asks for no
// other lease.
func TestAllowPanics(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		var asked atomic.Int64
		_, connect, close := virtualServer(t, remote.ServerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), Allow: func(_ remote.Peer, path string, verb remote.Verb) error {
			if strings.HasPrefix(path, "/panic") || path == "/" || path == "/root/found" && verb == remote.VerbInspect {
				asked.Add(1)
				panic("as a defect of Allow")
			}
			return nil
		}})
		client, other := connect(), connect()
		ctx, cancel := context.WithTimeout(t.Context(), 10*leaseTime)
		defer cancel()
		held, others := lockOf(t, client.Mutex("/held")), lockOf(t, other.Mutex("/other"))
		waiting := client.Mutex("/other").Acquire(ctx)
		for what, ask := range map[string]func() error{
			"Lock":      func() error { _, err := client.Mutex("/panic").Lock(ctx); return err },
			"Try":       func() error { _, err := client.Mutex("/panic").Lock(ctx, actors.Try()); return err },
			"semaphore": func() error { _, err := client.Semaphore("/panic/s", 2).Lock(ctx, actors.Permits(2)); return err },
			"multi-lock": func() error {
				_, err := client.MultiLock(client.Mutex("/x"), client.Mutex("/panic")).Lock(ctx)
				return err
			},
			"Participants": func() error { _, err := client.Mutex("/panic").Participants(ctx); return err },
			"Set":          func() error { return client.SharedCount("/panic", 0).Set(ctx, 1) },
			"Clients":      func() error { _, err := remote.Clients(ctx, client); return err },
		} {
			before := asked.Load()
			if err := ask(); !errors.Is(err, actors.ErrInternal) || !strings.Contains(err.Error(), "Allow of the lock server has failed") {
				t.Errorf("%s: %v", what, err)
			}
			<-time.After(leaseTime)
			if n := asked.Load() - before; n != 1 {
				t.Errorf("%s: Allow was asked %d times", what, n)
			}
		}
		others.Release()
		if g, err := waiting.Wait(ctx); err != nil || g.Unlock(ctx) != nil {
			t.Errorf("the other lock of the client: %v", err)
		}
		if err := held.Err(); err != nil || client.Stats().SessionsLost > 0 {
			t.Errorf("what the client holds: %v, %+v", err, client.Stats())
		}
		found, fine := lockOf(t, other.Mutex("/root/found")), lockOf(t, other.Mutex("/root/fine"))
		if all, err := client.FindLocks(ctx, "/root"); err != nil || !slices.Equal(all, []string{"/root/fine"}) { // asks in a goroutine of its own
			t.Errorf("FindLocks: %q, %v", all, err)
		}
		found.Release()
		fine.Release()
		for _, l := range []*actors.Locks{client, other} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		close()
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "as a defect of Allow") || strings.Contains(text, "actor failed") {
			t.Error(text)
		}
	})
}

// A panic of Changed does not keep the answer from the client that has changed something.
func TestChangedPanics(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		_, connect, close := virtualServer(t, remote.ServerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Changed: func(remote.Peer, remote.Change, error) { panic("as a defect of Changed") }})
		client := connect()
		ctx, cancel := context.WithTimeout(t.Context(), leaseTime)
		defer cancel()
		held := lockOf(t, client.Mutex("/held"))
		count := client.SharedCount("/count", 0)
		if err := count.Set(ctx, 7); err != nil {
			t.Error(err)
		}
		if n, err := count.Get(ctx); err != nil || n.Value != 7 {
			t.Errorf("%d, %v", n, err)
		}
		if err := held.Err(); err != nil {
			t.Errorf("what the client holds: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		close()
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "as a defect of Changed") {
			t.Error(text)
		}
	})
}
