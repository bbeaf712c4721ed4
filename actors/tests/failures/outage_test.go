package failures

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server is killed, and starts again within the session timeout. The holder releases, and the
// waiter is granted.
func TestWaitingProcessKilledServer(t *testing.T) {
	t.Parallel()
	b := locktest.NewFixture(t, zktest.Own(t))
	one, two := b.Locks(), b.Locks()
	g := locktest.Lock(b, one.Mutex(b.LockPath))
	f := two.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(2)
	b.Stop(t)
	locktest.WaitState(b, one, messages.SessionState_SUSPENDED)
	locktest.WaitState(b, two, messages.SessionState_SUSPENDED)
	locktest.Pending(b, f)
	late := one.Mutex(b.LockPath).Acquire(context.Background())
	release := g.Release()
	b.Start(t)
	locktest.Result(b, release)
	locktest.Unlock(b, locktest.Result(b, f))
	locktest.Unlock(b, locktest.Result(b, late))
	b.Clean()
}

// The server freezes, as during the migration of a virtual machine.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	b := locktest.NewFixture(t, zktest.Own(t))
	locks := b.Locks(func(cfg *actors.Config) { cfg.SessionTimeout = 6 * time.Second })
	mu := locks.Mutex(b.LockPath)
	g := locktest.Lock(b, mu)
	b.Freeze(t)
	locktest.Closes(b, g.Done(), "the grant")
	f := mu.Acquire(locktest.Within(b))
	b.Thaw(t)
	locktest.Unlock(b, locktest.Result(b, f))
	g.Release()
	b.Clean()
}

// The leader of three servers is stopped.
func TestEnsembleLosesLeader(t *testing.T) {
	b := locktest.Ensemble(t)
	one, two := b.Locks(), b.Locks()
	g := locktest.Lock(b, one.Mutex(b.LockPath))
	f := two.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(2)
	leader := b.Leader(t)
	leader.Stop(t)
	b.PassAround(4, 3, one.Mutex(b.LockPath+"-other"), two.Mutex(b.LockPath+"-other"))
	locktest.Pending(b, f)
	if g.Err() != nil {
		b.Fatal(g.Err())
	}
	locktest.Unlock(b, g)
	locktest.Unlock(b, locktest.Result(b, f))
	leader.Start(t)
	b.Clean()
}
