package remote_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

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
