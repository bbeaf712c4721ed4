package failures

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
)

const (
	fewOutstanding = 8               // allows to acquire any recipe
	soon           = time.Second / 2 // less than the lock-delay of the recipes, and than a tick
)

// fillBridge has as many requests of a process unanswered as MaxOutstanding allows. The server is
// paused.
func fillBridge(v *locktest.Virtual, locks *actors.Locks) {
	for range fewOutstanding {
		go locks.Multi(v.Context(), zkbridge.CheckNode("/"))
	}
	synctest.Wait()
	_, err := locks.Multi(v.Context(), zkbridge.CheckNode("/"))
	locktest.Is(v, err, actors.ErrLimit)
}

// expectGrantSoon waits for the grant of a request that has waited behind the process that was at
// its limits.
func expectGrantSoon(v *locktest.Virtual, next *actors.Future[*actors.Grant]) {
	since := time.Now()
	g := locktest.Result(v, next)
	if d := time.Since(since); d > soon {
		v.Errorf("the next holder has the lock after %v", d)
	}
	locktest.Unlock(v, g)
}

// Whatever gives something back is exempt from all limits.
func TestGivingBackAtTheLimits(t *testing.T) {
	t.Parallel()
	for _, row := range tableRows {
		t.Run(row.Name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				v.NeedsContainers() // a server that has none is logged
				const most = 2
				var log locktest.Log
				c := &cell{Fixture: v.Fixture, row: row, theirs: v.Locks()}
				c.ours = v.Locks(log.Config, func(cfg *actors.Config) {
					cfg.MaxRequests, cfg.MaxRequestsPerLock, cfg.MaxNodeData, cfg.MaxOutstanding = most, most, 1, fewOutstanding
				})
				c.hold()
				var ours *actors.Future[*actors.Grant]
				if len(c.grants) < most {
					ours = c.request(c.ours)
				}
				theirs := c.request(c.theirs)
				_, err := row.At(c.ours, c.LockPath).Lock(locktest.Within(v), row.Options...)
				locktest.Is(v, err, actors.ErrLimit)
				synctest.Wait()
				v.Pause()
				fillBridge(v, c.ours)
				if ours != nil {
					ours.Cancel()
				}
				var released []*actors.Future[struct{}]
				for _, g := range c.grants {
					released = append(released, g.Release())
				}
				synctest.Wait()
				v.Resume()
				expectGrantSoon(v, theirs)
				for _, f := range released {
					locktest.Result(v, f)
				}
				for _, level := range []string{"level=WARN", "level=ERROR"} {
					if lines := log.With(level); len(lines) > 0 {
						v.Errorf("logged: %s", lines)
					}
				}
			})
		})
	}
}

// A Close whose session goes on deletes all nodes, also at the limit of requests.
func TestCloseAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, row := range tableRows {
		t.Run(row.Name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				c := &cell{Fixture: v.Fixture, row: row, theirs: v.Locks()}
				var bridge *zkbridge.Bridge
				c.ours, bridge = v.OnBridge(func(cfg *zkbridge.Config) { cfg.MaxOutstanding = fewOutstanding })
				c.hold()
				ours := c.request(c.ours)
				theirs := c.request(c.theirs)
				before := bridge.Session().Epoch
				synctest.Wait()
				v.Pause()
				fillBridge(v, c.ours)
				closed := make(chan error, 1)
				go func() { closed <- c.ours.Close() }()
				synctest.Wait()
				v.Resume()
				locktest.Must(v, <-closed)
				locktest.Is(v, locktest.Failure(v, ours), actors.ErrClosed)
				if row.Name != "lock-delay" { // a Close is no release: the next holder waits for the delay
					expectGrantSoon(v, theirs)
				} else {
					locktest.Unlock(v, locktest.Result(v, theirs))
				}
				if s := bridge.Session(); s.Epoch != before {
					v.Errorf("%v", s)
				}
			})
		})
	}
}
