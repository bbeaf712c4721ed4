//lint:file-ignore SA1012 a nil context is what is tested

package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
)

// A nil context is an error that names it, not a panic.
func TestNilContext(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config)
		mu, s, count := locks.Mutex(b.LockPath), locks.Semaphore(b.LockPath+"-s", 2), locks.SharedCount(b.LockPath+"-count", 1)
		g := locktest.Lock(b, mu)
		work := g.Context(nil)
		locktest.Closes(b, work.Done(), "the context")
		for name, err := range map[string]error{
			"Connect":       locktest.ErrOf(actors.Connect(nil, b.Addr(), actors.Config{})),
			"Acquire":       locktest.Failure(b, mu.Acquire(nil)),
			"Lock":          locktest.ErrOf(mu.Lock(nil)),
			"Context":       context.Cause(work),
			"Participants":  locktest.ErrOf(mu.Participants(nil)),
			"RevokeHolders": locktest.ErrOf(mu.RevokeHolders(nil, time.Second)),
			"Revoke":        locktest.ErrOf(locks.Revoke(nil, g.Node(), time.Second)),
			"Verify":        g.Verify(nil),
			"VerifyToken":   locks.VerifyToken(nil, g.Node(), g.Token()),
			"Multi":         locktest.ErrOf(locks.Multi(nil, g.Guard()...)),
			"Remaining":     locktest.ErrOf(s.Remaining(nil)),
			"Leader":        locktest.ErrOf(locks.Election(b.LockPath).Leader(nil)),
			"Get":           locktest.ErrOf(count.Get(nil)),
			"Set":           count.Set(nil, 1),
			"TrySet":        locktest.ErrOf(count.TrySet(nil, actors.Count{Version: -1}, 1)),
			"Unlock":        g.Unlock(nil),
		} {
			if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "context is nil") {
				b.Errorf("%s: %v", name, err)
			}
		}
		if _, open := <-locks.Sessions(nil); open || len(log.With("context is nil")) != 1 {
			b.Error("Sessions without a context")
		}
		b.WaitNodes(0) // Unlock has released
		f := mu.Acquire(locktest.Within(b))
		_, err := f.Wait(nil)
		locktest.Is(b, err, ask.ErrNilContext)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// A nil option is an error that names it.
func TestNilOption(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		for _, c := range []struct {
			err  error
			text string
		}{
			{locktest.ErrOf(locks.Mutex(b.LockPath).Lock(locktest.Within(b), actors.Try(), nil)), "option 2 of 2 is nil"},
			{locktest.Failure(b, locks.Mutex(b.LockPath).Acquire(locktest.Within(b), nil)), "option 1 of 1 is nil"},
			{locktest.ErrOf(locks.Mutex(b.LockPath, actors.LocalQueue(actors.LocalQueueConfig{}), nil).Lock(locktest.Within(b))), "a lock option is nil"},
			{locktest.ErrOf(locks.Semaphore(b.LockPath, 1, nil).Lock(locktest.Within(b))), "a lock option is nil"},
		} {
			if !errors.Is(c.err, actors.ErrInvalid) || !strings.Contains(c.err.Error(), c.text) {
				b.Errorf("%v does not say %q", c.err, c.text)
			}
		}
	})
}

// Errors name the argument as the user has written it.
func TestInvalidTexts(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		for text, err := range map[string]error{
			`path "/locks/a/" must not end with a slash`:                     locktest.ErrOf(locks.Mutex("/locks/a/").Lock(locktest.Within(b))),
			`count path "/count/" must not end with a slash`:                 locktest.ErrOf(locks.Semaphore(b.LockPath, 1, actors.SharedPermits("/count/")).Lock(locktest.Within(b))),
			`2 permits: a mutex has no permits; leave Permits out`:           locktest.ErrOf(locks.Mutex(b.LockPath).Lock(locktest.Within(b), actors.Permits(2))),
			`1 permits: a read-write lock has no permits; leave Permits out`: locktest.ErrOf(locks.RWMutex(b.LockPath+"-rw").Read().Lock(locktest.Within(b), actors.Permits(1))),
			`2 permits: a semaphore of 1 gives 1 at most`:                    locktest.ErrOf(locks.SemaphoreMutex(b.LockPath+"-s").Lock(locktest.Within(b), actors.Permits(2))),
			`path "//"`: locktest.ErrOf(locks.Mutex("//").Lock(locktest.Within(b))),
		} {
			if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), text) {
				b.Errorf("%v does not say %s", err, text)
			}
		}
	})
}
