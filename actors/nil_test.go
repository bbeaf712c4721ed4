//lint:file-ignore SA1012 a nil context is what is tested

package actors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
)

// A nil context is an error that names it, not a panic.
func TestNilContext(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		var log logs
		locks := b.locks(log.config)
		mu, s, count := locks.Mutex(b.path), locks.Semaphore(b.path+"-s", 2), locks.SharedCount(b.path+"-count", 1)
		g := lock(b, mu)
		work := g.Context(nil)
		closes(b, work.Done(), "the context")
		for name, err := range map[string]error{
			"Connect":       errOf(actors.Connect(nil, b.Addr(), actors.Config{})),
			"Acquire":       failure(b, mu.Acquire(nil)),
			"Lock":          errOf(mu.Lock(nil)),
			"Context":       context.Cause(work),
			"Participants":  errOf(mu.Participants(nil)),
			"RevokeHolders": errOf(mu.RevokeHolders(nil, time.Second)),
			"Revoke":        errOf(locks.Revoke(nil, g.Node(), time.Second)),
			"Verify":        g.Verify(nil),
			"VerifyToken":   locks.VerifyToken(nil, g.Node(), g.Token()),
			"Multi":         errOf(locks.Multi(nil, g.Guard()...)),
			"Remaining":     errOf(s.Remaining(nil)),
			"Leader":        errOf(locks.Election(b.path).Leader(nil)),
			"Get":           errOf(count.Get(nil)),
			"Set":           count.Set(nil, 1),
			"TrySet":        errOf(count.TrySet(nil, actors.Count{Version: -1}, 1)),
			"Unlock":        g.Unlock(nil),
		} {
			if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "context is nil") {
				b.Errorf("%s: %v", name, err)
			}
		}
		if _, open := <-locks.Sessions(nil); open || len(log.with("context is nil")) != 1 {
			b.Error("Sessions without a context")
		}
		b.waitNodes(0) // Unlock has released
		f := mu.Acquire(within(b))
		_, err := f.Wait(nil)
		is(b, err, ask.ErrNilContext)
		unlock(b, result(b, f))
	})
}

// A nil option is an error that names it.
func TestNilOption(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		for _, c := range []struct {
			err  error
			text string
		}{
			{errOf(locks.Mutex(b.path).Lock(within(b), actors.Try(), nil)), "option 2 of 2 is nil"},
			{failure(b, locks.Mutex(b.path).Acquire(within(b), nil)), "option 1 of 1 is nil"},
			{errOf(locks.Mutex(b.path, actors.LocalQueue(actors.LocalQueueConfig{}), nil).Lock(within(b))), "a lock option is nil"},
			{errOf(locks.Semaphore(b.path, 1, nil).Lock(within(b))), "a lock option is nil"},
		} {
			if !errors.Is(c.err, actors.ErrInvalid) || !strings.Contains(c.err.Error(), c.text) {
				b.Errorf("%v does not say %q", c.err, c.text)
			}
		}
	})
}

// Errors name the argument as the user has written it.
func TestInvalidTexts(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		for text, err := range map[string]error{
			`path "/locks/a/" must not end with a slash`:                     errOf(locks.Mutex("/locks/a/").Lock(within(b))),
			`count path "/count/" must not end with a slash`:                 errOf(locks.Semaphore(b.path, 1, actors.SharedPermits("/count/")).Lock(within(b))),
			`2 permits: a mutex has no permits; leave Permits out`:           errOf(locks.Mutex(b.path).Lock(within(b), actors.Permits(2))),
			`1 permits: a read-write lock has no permits; leave Permits out`: errOf(locks.RWMutex(b.path+"-rw").Read().Lock(within(b), actors.Permits(1))),
			`2 permits: a semaphore of 1 gives 1 at most`:                    errOf(locks.SemaphoreMutex(b.path+"-s").Lock(within(b), actors.Permits(2))),
			`path "//"`: errOf(locks.Mutex("//").Lock(within(b))),
		} {
			if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), text) {
				b.Errorf("%v does not say %s", err, text)
			}
		}
	})
}
