package actors_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The failure of one lock's release does not end the grants of other locks: another process holds
// an unrelated lock only after its holder has released it, or at least the margin after the holder
// has noticed its loss.
func TestUnrelatedLockKeepsItsMargin(t *testing.T) {
	t.Parallel()
	const margin = session / 5 // the default
	var fails atomic.Bool
	for name, c := range map[string]struct {
		fail func(v *virtual, locks *actors.Locks, bridge *zkbridge.Bridge)
		lost bool // the session is lost
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
					cfg.Logger = slog.New(panickingHandler{slog.DiscardHandler, &fails})
				})
				others := v.locks()
				unrelated := lock(v, locks.Mutex("/unrelated"))
				ctx := unrelated.Context(v.Context())
				waiting := others.Mutex("/unrelated").Acquire(v.Context())
				<-time.After(time.Second)
				c.fail(v, locks, bridge)
				if c.lost {
					closes(v, ctx.Done(), "the context")
					is(v, context.Cause(ctx), actors.ErrSessionLost)
					noticed := time.Now()
					g := result(v, waiting)
					if took := time.Since(noticed); took < margin {
						v.Errorf("the other process holds %v after the holder noticed its loss", took)
					}
					unlock(v, g)
					return
				}
				<-time.After(time.Minute)
				if unrelated.Err() != nil || ctx.Err() != nil {
					v.Errorf("the holder of another lock has lost it: %v", unrelated.Err())
				}
				pending(v, waiting)
				unlock(v, unrelated)
				unlock(v, result(v, waiting))
			})
		})
	}
}

// The same on both servers, for a right that is missing for a while. The node that ZooKeeper does
// not delete blocks its own lock until the right is back, and then the process can use the lock
// again.
func TestReleaseRefused(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		other := b.path + "-unrelated"
		unrelated := lock(b, locks.Mutex(other))
		waiting := others.Mutex(other).Acquire(within(b))
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		next := others.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		setACL(b, b.Client(b), b.path, zk.PermAll&^zk.PermDelete)
		is(b, g.Unlock(within(b)), actors.ErrNoAuth)
		if g.Err() == nil {
			b.Error("the grant goes on after its release")
		}
		pending(b, next, waiting)
		setACL(b, b.Client(b), b.path, zk.PermAll)
		h := result(b, next)
		pending(b, waiting)
		if err := unrelated.Err(); err != nil || locks.Session().Epoch != 1 {
			b.Errorf("the holder of another lock has lost it: %v", err)
		}
		again := mu.Acquire(within(b))
		b.waitNodes(2)
		pending(b, again)
		unlock(b, h)
		unlock(b, result(b, again))
		unlock(b, unrelated)
		unlock(b, result(b, waiting))
	})
}

func setACL(t testing.TB, conn *zk.Conn, path string, rights int32) {
	t.Helper()
	_, err := conn.SetACL(path, zk.WorldACL(rights), -1)
	must(t, err)
}

// panickingHandler panics, once now is true, at the next line at INFO, in the goroutine that logs
// it: the line about the session of the bridge's actor.
type panickingHandler struct {
	slog.Handler
	now *atomic.Bool
}

func (p panickingHandler) Enabled(_ context.Context, level slog.Level) bool {
	if level == slog.LevelInfo && p.now.Swap(false) {
		panic("logged")
	}
	return true
}

func (panickingHandler) Handle(context.Context, slog.Record) error { return nil }

func (p panickingHandler) WithAttrs([]slog.Attr) slog.Handler { return p }
