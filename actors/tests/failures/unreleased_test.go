package failures

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The failure of one lock's release does not end the grants of other locks: another process holds
// an unrelated lock only after its holder has released it, or at least the margin after the holder
// has noticed its loss.
func TestUnrelatedLockKeepsItsMargin(t *testing.T) {
	t.Parallel()
	const margin = locktest.SessionTimeout / 5 // the default
	var fails atomic.Bool
	for name, c := range map[string]struct {
		fail func(v *locktest.Virtual, locks *actors.Locks, bridge *zkbridge.Bridge)
		lost bool // the session is lost
	}{
		"release is refused": {func(v *locktest.Virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			g := locktest.Lock(v, locks.Mutex("/lock"))
			setACL(v, v.Client(v), "/lock", zk.PermAll&^zk.PermDelete)
			locktest.Is(v, locktest.Failure(v, g.Release()), actors.ErrNoAuth)
		}, false},
		"release is never answered": {func(v *locktest.Virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			g := locktest.Lock(v, locks.Mutex("/lock"))
			v.NeedsResumption()
			v.Inject(embedded.Fault{Op: embedded.OpDelete, Path: "/lock/", Action: embedded.CutBefore, Times: -1})
			locktest.Is(v, locktest.Failure(v, g.Release()), actors.ErrUnavailable)
		}, false},
		"create is not answered and nothing can be read": {func(v *locktest.Virtual, locks *actors.Locks, _ *zkbridge.Bridge) {
			mu := locks.Mutex("/lock")
			locktest.Unlock(v, locktest.Lock(v, mu))
			setACL(v, v.Client(v), "/lock", zk.PermAll&^zk.PermRead)
			v.NeedsResumption()
			v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/lock/", Action: embedded.DropReply})
			if _, err := mu.Lock(locktest.Within(v)); err == nil {
				v.Error("granted without being seen")
			}
		}, false},
		"the bridge fails": {func(v *locktest.Virtual, _ *actors.Locks, _ *zkbridge.Bridge) {
			fails.Store(true)
			v.DropConnections() // which is logged
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				locks, bridge := v.OnBridge(func(cfg *zkbridge.Config) {
					cfg.Logger = slog.New(panickingHandler{slog.DiscardHandler, &fails})
				})
				others := v.Locks()
				unrelated := locktest.Lock(v, locks.Mutex("/unrelated"))
				ctx := unrelated.Context(v.Context())
				waiting := others.Mutex("/unrelated").Acquire(v.Context())
				<-time.After(time.Second)
				c.fail(v, locks, bridge)
				if c.lost {
					locktest.Closes(v, ctx.Done(), "the context")
					locktest.Is(v, context.Cause(ctx), actors.ErrSessionLost)
					noticed := time.Now()
					g := locktest.Result(v, waiting)
					if took := time.Since(noticed); took < margin {
						v.Errorf("the other process holds %v after the holder noticed its loss", took)
					}
					locktest.Unlock(v, g)
					return
				}
				<-time.After(time.Minute)
				if unrelated.Err() != nil || ctx.Err() != nil {
					v.Errorf("the holder of another lock has lost it: %v", unrelated.Err())
				}
				locktest.Pending(v, waiting)
				locktest.Unlock(v, unrelated)
				locktest.Unlock(v, locktest.Result(v, waiting))
			})
		})
	}
}

// The same on both servers, for a right that is missing for a while. The node that ZooKeeper does
// not delete blocks its own lock until the right is back, and then the process can use the lock
// again.
func TestReleaseRefused(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, others := b.Locks(), b.Locks()
		other := b.LockPath + "-unrelated"
		unrelated := locktest.Lock(b, locks.Mutex(other))
		session := unrelated.Session()
		waiting := others.Mutex(other).Acquire(locktest.Within(b))
		mu := locks.Mutex(b.LockPath)
		g := locktest.Lock(b, mu)
		next := others.Mutex(b.LockPath).Acquire(locktest.Within(b))
		b.WaitNodes(2)
		setACL(b, b.Client(b), b.LockPath, zk.PermAll&^zk.PermDelete)
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNoAuth)
		if g.Err() == nil {
			b.Error("the grant goes on after its release")
		}
		locktest.Pending(b, next, waiting)
		setACL(b, b.Client(b), b.LockPath, zk.PermAll)
		h := locktest.Result(b, next)
		locktest.Pending(b, waiting)
		if err := unrelated.Err(); err != nil || locks.Session().ID != session {
			b.Errorf("the holder of another lock has lost it: %v", err)
		}
		again := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Pending(b, again)
		locktest.Unlock(b, h)
		locktest.Unlock(b, locktest.Result(b, again))
		locktest.Unlock(b, unrelated)
		locktest.Unlock(b, locktest.Result(b, waiting))
	})
}

func setACL(t testing.TB, conn *zk.Conn, path string, rights int32) {
	t.Helper()
	_, err := conn.SetACL(path, zk.WorldACL(rights), -1)
	locktest.Must(t, err)
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
