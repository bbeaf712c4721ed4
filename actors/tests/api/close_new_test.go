package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Locks of New live in a session that goes on when they are closed.

// closeLeavesNothing closes the locks, and checks that no node of the lock is left then.
func closeLeavesNothing(b *locktest.Fixture, locks *actors.Locks) {
	b.Helper()
	locktest.Must(b, locks.Close())
	for _, path := range []string{b.LockPath, b.LockPath + "/leases", b.LockPath + "/locks"} {
		for _, name := range b.Nodes(b, path) {
			if name != "leases" && name != "locks" {
				b.Errorf("Close has left %s/%s", path, name)
			}
		}
	}
}

// Close comes during a transaction whose answer is lost, or which is not executed.
func TestCloseOfNewDuringTransaction(t *testing.T) {
	t.Parallel()
	actions := map[string]embedded.Action{"cut before": embedded.CutBefore, "cut after": embedded.DropReply}
	for action, fault := range actions {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			locktest.OnEmbedded(t, func(b *locktest.Fixture) {
				locks, _ := b.OnBridge()
				g := locktest.Lock(b, locktest.Named("lock-delay")[0].At(locks, b.LockPath))
				i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: fault})
				g.Release()
				<-i.Fired()
				closeLeavesNothing(b, locks)
			})
		})
	}
}

// The transaction that releases fails, because the held marker is deleted.
func TestCloseOfNewDuringFailingTransaction(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks, _ := b.OnBridge()
		g := locktest.Lock(b, locks.Mutex(b.LockPath, actors.LockDelay(time.Minute)))
		locktest.Must(b, b.Client(b).Delete(b.LockPath+locktest.HeldMarker, -1))
		i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayRequest, Delay: 200 * time.Millisecond})
		g.Release()
		<-i.Fired()
		closeLeavesNothing(b, locks)
	})
}

// Close comes during the creation of a held marker, which goes with the node.
func TestCloseOfNewDuringMarking(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks, _ := b.OnBridge()
		i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: b.LockPath + locktest.HeldMarker, Action: embedded.DelayRequest, Delay: 200 * time.Millisecond})
		locks.Mutex(b.LockPath, actors.LockDelay(time.Minute)).Acquire(context.Background())
		<-i.Fired()
		closeLeavesNothing(b, locks)
	})
}

// The error of Close names a node whose deletion is not confirmed.
func TestCloseOfNewNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, bridge := v.OnBridge()
		g := locktest.Lock(v, locks.Mutex("/lock"))
		i := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: bridge.Session().ID, Times: -1, Action: embedded.BlackHole})
		defer i.Remove()
		since := time.Now()
		err := locks.Close()
		if err == nil || !strings.Contains(err.Error(), g.Node()) {
			v.Errorf("Close: %v; %s is left", err, g.Node())
		}
		if took := time.Since(since); took > 2*locktest.SessionTimeout {
			v.Errorf("Close took %v", took)
		}
	})
}

// The error of Close names a node that cannot be deleted.
func TestCloseOfNewWithoutRight(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, _ := b.OnBridge()
		conn := b.Client(b)
		for _, mu := range []locktest.Handle{locks.Mutex(b.LockPath), locks.Mutex(b.LockPath+"-delay", actors.LockDelay(time.Second))} {
			g := locktest.Lock(b, mu)
			_, err := conn.SetACL(mu.Path(), zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
			locktest.Must(b, err)
			defer func() {
				_, err := conn.SetACL(mu.Path(), zk.WorldACL(zk.PermAll), -1)
				locktest.Must(b, err)
				names, _, err := conn.Children(mu.Path())
				locktest.Must(b, err)
				for _, name := range names {
					conn.Delete(mu.Path()+"/"+name, -1) // or the bridge does
				}
				conn.Delete(mu.Path()+locktest.HeldMarker, -1)
			}()
			defer func() {
				if err := locks.Close(); err == nil || !strings.Contains(err.Error(), g.Node()) {
					b.Errorf("Close: %v; %s is left", err, g.Node())
				}
			}()
		}
	})
}
