package failures

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A lock that is used for the first time without a connection waits for the connection. (It sent
// its create again and again, for an epoch that did not exist.)
func TestFirstUseWhileSuspended(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		away := v.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		v.DropConnections()
		locktest.WaitState(v, locks, messages.SessionState_SUSPENDED)
		f := locks.Mutex("/lock").Acquire(context.Background())
		<-time.After(time.Second)
		locktest.Pending(v, f)
		away.Remove()
		g := locktest.Result(v, f)
		if now := locks.Session(); v.Resumes() && now.Epoch != 1 || g.Session() != now.ID {
			v.Errorf("granted in session %#x, now it is %#x of epoch %d", g.Session(), now.ID, now.Epoch)
		}
		locktest.Unlock(v, g)
		v.Clean()
	})
}
