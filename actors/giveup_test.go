package actors_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A lock that cannot be cleaned up does not cost the holders of other locks theirs: a rival
// gets an unrelated lock when its holder has released it, or not earlier than the margin
// after the holder has heard of the loss.
func TestUnrelatedLockKeepsItsMargin(t *testing.T) {
	t.Parallel()
	const margin = session / 5 // the default
	var fails atomic.Bool
	for name, c := range map[string]struct {
		trouble func(v *virtual, locks *actors.Locks, bridge *zkbridge.Bridge)
		fatal   bool // the holder hears of a loss
	}{
		"release is refused": {func(v *virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			g := lock(v, locks.Mutex("/lock"))
			setACL(v, v.Client(v), "/lock", zk.PermAll&^zk.PermDelete)
			is(v, failure(v, g.Release()), actors.ErrNoAuth)
		}, false},
		"release is never answered": {func(v *virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			g := lock(v, locks.Mutex("/lock"))
			v.Inject(embedded.Fault{Op: embedded.OpDelete, Path: "/lock/", Action: embedded.CutBefore, Times: -1})
			is(v, failure(v, g.Release()), actors.ErrUnavailable)
		}, false},
		"create is not answered and nothing can be read": {func(v *virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			mu := locks.Mutex("/lock")
			unlock(v, lock(v, mu))
			setACL(v, v.Client(v), "/lock", zk.PermAll&^zk.PermRead)
			v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/lock/", Action: embedded.DropReply})
			if _, err := mu.Lock(within(v)); err == nil {
				v.Error("granted without being seen")
			}
		}, false},
		"the bridge fails": {func(v *virtual, _ *actors.Locks, _ *zkbridge.Bridge) {
			fails.Store(true)
			v.DropConnections() // which is logged
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				locks, bridge := v.onBridge(func(cfg *zkbridge.Config) {
					cfg.Logger = slog.New(panicking{slog.DiscardHandler, &fails})
				})
				rivals := v.locks()
				unrelated := lock(v, locks.Mutex("/unrelated"))
				ctx := unrelated.Context(v.Context())
				waits := rivals.Mutex("/unrelated").Acquire(v.Context())
				<-time.After(time.Second)
				c.trouble(v, locks, bridge)
				if c.fatal {
					closes(v, ctx.Done(), "the context")
					is(v, context.Cause(ctx), actors.ErrSessionLost)
					told := time.Now()
					g := result(v, waits)
					if took := time.Since(told); took < margin {
						v.Errorf("the rival holds %v after the holder was told", took)
					}
					unlock(v, g)
					return
				}
				<-time.After(time.Minute)
				if unrelated.Err() != nil || ctx.Err() != nil {
					v.Errorf("the holder of another lock has lost it: %v", unrelated.Err())
				}
				pending(v, waits)
				unlock(v, unrelated)
				unlock(v, result(v, waits))
			})
		})
	}
}

// The same on both servers, for a right that is taken away. What could not be released
// blocks its own lock until the right is back, and the process can go on using it.
func TestReleaseRefused(t *testing.T) {
	each(t, func(b *testLock) {
		locks, rivals := b.locks(), b.locks()
		other := b.path + "-unrelated"
		unrelated := lock(b, locks.Mutex(other))
		waits := rivals.Mutex(other).Acquire(within(b))
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		rival := rivals.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		setACL(b, b.Client(b), b.path, zk.PermAll&^zk.PermDelete)
		is(b, g.Unlock(within(b)), actors.ErrNoAuth)
		if g.Err() == nil {
			b.Error("what was released counts as held")
		}
		pending(b, rival, waits)
		setACL(b, b.Client(b), b.path, zk.PermAll)
		h := result(b, rival)
		pending(b, waits)
		if err := unrelated.Err(); err != nil || locks.Session().Epoch != 1 {
			b.Errorf("the holder of another lock has lost it: %v", err)
		}
		again := mu.Acquire(within(b))
		b.waitNodes(2)
		pending(b, again)
		unlock(b, h)
		unlock(b, result(b, again))
		unlock(b, unrelated)
		unlock(b, result(b, waits))
	})
}

func setACL(t testing.TB, conn *zk.Conn, path string, rights int32) {
	t.Helper()
	_, err := conn.SetACL(path, zk.WorldACL(rights), -1)
	must(t, err)
}

// panicking is a log that panics, once it is to, at the next line about the session, which the
// bridge's actor writes.
type panicking struct {
	slog.Handler
	now *atomic.Bool
}

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "session is") && p.now.Swap(false) {
		panic("logged")
	}
	return nil
}

func (p panicking) WithAttrs([]slog.Attr) slog.Handler { return p }
