package actors_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Locks of New live in a session that goes on when they are closed.

// closeLeavesNothing closes the locks, and checks that no node of the lock is left then.
func (b *testLock) closeLeavesNothing(locks *actors.Locks) {
	b.Helper()
	must(b, locks.Close())
	for _, path := range []string{b.path, b.path + "/leases", b.path + "/locks"} {
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
			onEmbedded(t, func(b *testLock) {
				locks, _ := b.onBridge()
				g := lock(b, named("lock-delay")[0].at(locks, b.path))
				i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: fault})
				g.Release()
				<-i.Fired()
				b.closeLeavesNothing(locks)
			})
		})
	}
}

// The transaction that releases fails, because the held marker is deleted.
func TestCloseOfNewDuringFailingTransaction(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		locks, _ := b.onBridge()
		g := lock(b, locks.Mutex(b.path, actors.LockDelay(time.Minute)))
		must(b, b.Client(b).Delete(b.path+heldMarker, -1))
		i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayRequest, Delay: 200 * time.Millisecond})
		g.Release()
		<-i.Fired()
		b.closeLeavesNothing(locks)
	})
}

// Close comes during the creation of a held marker, which goes with the node.
func TestCloseOfNewDuringMarking(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		locks, _ := b.onBridge()
		i := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: b.path + heldMarker, Action: embedded.DelayRequest, Delay: 200 * time.Millisecond})
		locks.Mutex(b.path, actors.LockDelay(time.Minute)).Acquire(context.Background())
		<-i.Fired()
		b.closeLeavesNothing(locks)
	})
}

// The error of Close names a node whose deletion is not confirmed.
func TestCloseOfNewNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks, bridge := v.onBridge()
		g := lock(v, locks.Mutex("/lock"))
		i := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: bridge.Session().ID, Times: -1, Action: embedded.BlackHole})
		defer i.Remove()
		since := time.Now()
		err := locks.Close()
		if err == nil || !strings.Contains(err.Error(), g.Node()) {
			v.Errorf("Close: %v; %s is left", err, g.Node())
		}
		if took := time.Since(since); took > 2*session {
			v.Errorf("Close took %v", took)
		}
	})
}

// The error of Close names a node that cannot be deleted.
func TestCloseOfNewWithoutRight(t *testing.T) {
	each(t, func(b *testLock) {
		locks, _ := b.onBridge()
		conn := b.Client(b)
		for _, mu := range []handle{locks.Mutex(b.path), locks.Mutex(b.path+"-delay", actors.LockDelay(time.Second))} {
			g := lock(b, mu)
			_, err := conn.SetACL(mu.Path(), zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
			must(b, err)
			defer func() {
				_, err := conn.SetACL(mu.Path(), zk.WorldACL(zk.PermAll), -1)
				must(b, err)
				names, _, err := conn.Children(mu.Path())
				must(b, err)
				for _, name := range names {
					conn.Delete(mu.Path()+"/"+name, -1) // or the bridge does
				}
				conn.Delete(mu.Path()+heldMarker, -1)
			}()
			defer func() {
				if err := locks.Close(); err == nil || !strings.Contains(err.Error(), g.Node()) {
					b.Errorf("Close: %v; %s is left", err, g.Node())
				}
			}()
		}
	})
}
