package failures

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A server hangs up on one of the requests that not every server knows, before the sessions begin or
// from then on: two processes that have a mutex in turn go on, in their sessions where the server resumes them.
func TestServerHangsUpOnARequest(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpCreateContainer, embedded.OpCreate2, embedded.OpMultiRead, embedded.OpSetWatches, embedded.OpGetEphemerals} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/later %v", op, later), func(t *testing.T) {
				locktest.Bubble(t, func(v *locktest.Virtual) {
					hangUp := func() { v.Inject(embedded.Fault{Op: op, Action: embedded.CutBefore, Times: -1}) }
					if !later {
						hangUp()
					}
					processes := []*actors.Locks{v.Locks(), v.Locks()}
					if later {
						hangUp()
					}
					var g errgroup.Group
					for _, locks := range processes {
						g.Go(func() error {
							for range 50 {
								grant, err := locks.Mutex(v.LockPath).Lock(locktest.Within(v))
								if err != nil {
									return err
								}
								<-time.After(10 * time.Millisecond)
								if _, err := grant.Release().Result(); err != nil {
									return err
								}
							}
							return nil
						})
					}
					began := time.Now()
					locktest.Must(v, g.Wait())
					if took := time.Since(began); took > 20*time.Second {
						v.Errorf("100 grants took %v", took)
					}
					for _, locks := range processes {
						if s := locks.Stats(); s.Suspensions > 4 || s.SessionsLost > 0 && v.Resumes() {
							v.Errorf("SUSPENDED %d times, %d sessions lost", s.Suspensions, s.SessionsLost)
						}
					}
					v.Clean()
				})
			})
		}
	}
}
