package failures

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Tests of a lock library that does not know of the end of its session, or whose server lags
// behind:
//
//	a lagging server shows the node of a dead session    TestDeadSessionsNode
//	a create without an answer, then a lagging server    TestCreateOnALaggingServer, TestWireFaults/three servers,
//	                                                     TestEveryFaultAtEveryRequest/*/stale and drop reply
//	entering again on a dead session                     TestEndings
//	histories under faults, checked for linearizability  TestHistory
//	a holder paused beyond its session; fenced writes    examples/fencing, TestGuard
//	time-outs with the server a black hole               TestEndings,
//	                                                     TestEveryFaultAtEveryRequest/wait for too long/black hole
//	the context ends at every request                    TestCancelAtEachRequest, TestEveryFaultAtEveryRequest
//	watches are gone at the end                          Fixture.Clean
//	the directory is deleted while a request waits       TestDirectoryDeletedWhileWaiting
//	goroutines are gone at the end                       TestMain, and each bubble
//	a follower cut off from its ensemble                 TestFollowerIsCutOff
//	members killed and frozen                            TestMembersFail, TestEnsembleLosesLeader

// The process has lost its session, which the server keeps for a while, and whose node a lagging
// follower shows for longer. The process does not hold by this node, and its request waits until a
// read shows that the node is gone.
func TestDeadSessionsNode(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		other := v.Mutex()
		g := locktest.Lock(v, mu)
		v.Inject(embedded.Fault{Op: embedded.OpPing, Session: locks.Session().ID, Action: embedded.BlackHole})
		away := v.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		locktest.Closes(v, g.Done(), "the grant")
		locktest.Is(v, g.Err(), actors.ErrSessionLost)
		away.Remove()
		locktest.WaitState(v, locks, messages.SessionState_CONNECTED)
		if n := len(v.LockNodes()); n != 1 {
			v.Errorf("%d nodes: the server should keep the session", n)
		}
		v.Freeze(locks.Session().ID)
		f := mu.Acquire(context.Background())
		<-time.After(2 * locktest.SessionTimeout)
		if n := len(v.LockNodes()); n != 1 {
			v.Errorf("%d nodes: the session should have expired", n)
		}
		locktest.Pending(v, f)
		behind := other.Acquire(context.Background())
		v.Thaw(0)
		h := locktest.Result(v, f)
		if h.Session() != locks.Session().ID || h.Token().Compare(g.Token()) <= 0 {
			v.Errorf("session %#x, token %v after %v", h.Session(), h.Token(), g.Token())
		}
		locktest.Pending(v, behind)
		locktest.Is(v, locktest.Failure(v, g.Release()), actors.ErrSessionLost)
		locktest.Unlock(v, h)
		locktest.Unlock(v, locktest.Result(v, behind))
		v.Clean()
	})
}

// The answer to a create is lost, and the server of the next connection does not show the node yet.
// The process finds the node nevertheless, and creates no second one.
func TestCreateOnALaggingServer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption() // the node that the process finds is of its session
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		locktest.Unlock(v, locktest.Lock(v, mu)) // which reads the directory
		v.Freeze(locks.Session().ID)
		lost := v.Inject(embedded.Fault{Op: embedded.OpMulti, Session: locks.Session().ID, Action: embedded.DropReply})
		before := v.Zxid()
		g := locktest.Result(v, mu.Acquire(context.Background()))
		if len(lost.Firings()) != 1 || g.Token().Czxid != before+1 || len(v.LockNodes()) != 1 {
			v.Errorf("token %v, transaction %d; nodes %v", g.Token(), before+1, v.LockNodes())
		}
		v.Thaw(0)
		locktest.Unlock(v, g)
		v.Clean()
	})
}
