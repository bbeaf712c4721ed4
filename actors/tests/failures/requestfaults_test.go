package failures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// requestKinds are the requests of acquiring, waiting and releasing.
var requestKinds = []embedded.Op{embedded.OpMulti, embedded.OpCreate, embedded.OpCreateContainer, embedded.OpGetChildren2,
	embedded.OpGetData, embedded.OpSetWatches, embedded.OpDelete, embedded.OpExists, embedded.OpAny}

// differingRecipes are recipes that send different requests.
var differingRecipes = locktest.Named("mutex", "semaphore, two of three")

// TestFaults has the first and later requests of each kind fail in each way, while two clients
// contend. Both hold as often as they request, one at a time, and no node is left.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, r := range differingRecipes {
		t.Run(r.Name, func(t *testing.T) { eachFault(t, r, sample.OneIn(t, 10)) })
	}
}

func eachFault(t *testing.T, r locktest.Recipe, sampled func() bool) {
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest,
		embedded.DelayReply, embedded.BlackHole, embedded.BlackHoleAfter, embedded.ExpireSession} {
		for _, op := range requestKinds {
			if !sampled() {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", action, op), func(t *testing.T) {
				fired, most := 0, 5
				if op == embedded.OpAny {
					most = 12
				}
				for nth := 1; nth <= most; nth++ {
					if !contendWithFault(t, r, embedded.Fault{Op: op, Nth: nth, Action: action, Delay: time.Second}) || t.Failed() {
						break
					}
					fired++
				}
				if fired == 0 && op == embedded.OpMulti {
					t.Error("no fault has fired")
				}
			})
		}
	}
}

// TestFaultsInARow is the same with three faults in a row.
func TestFaultsInARow(t *testing.T) {
	t.Parallel()
	sampled := sample.OneIn(t, 7)
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.ExpireSession} {
		for _, op := range requestKinds {
			for _, r := range differingRecipes {
				if !sampled() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v", r.Name, action, op), func(t *testing.T) {
					contendWithFault(t, r, embedded.Fault{Op: op, Nth: 2, Times: 3, Action: action})
				})
			}
		}
	}
}

// contendWithFault reports whether the fault has fired.
func contendWithFault(t *testing.T, r locktest.Recipe, fault embedded.Fault) (fired bool) {
	t.Helper()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		injected := v.Inject(fault)
		l := locktest.NewLedger(v)
		if fault.Action == embedded.ExpireSession {
			l.SessionEnded = func(id int64) bool {
				return !slices.ContainsFunc(v.Sessions(), func(s embedded.SessionInfo) bool { return s.ID == id })
			}
		}
		done := make(chan int)
		const rounds = 3
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for range 2 {
			locks := v.Locks()
			mu := r.At(locks, "/lock")
			go func() {
				grants := 0
				for range rounds {
					g, err := mu.Lock(ctx, r.Options...)
					if err != nil {
						v.Errorf("fault %d: lock: %v", fault.Nth, err)
						break
					}
					l.Enter("", g, locktest.Whole(v.LockPath))
					grants++
					l.Leave(g)
					err = g.Unlock(ctx)
					deleted := fault.Action == embedded.ExpireSession && errors.Is(err, actors.ErrNodeDeleted) // heard of before the loss
					if err != nil && !deleted && !errors.Is(err, actors.ErrSessionLost) {
						v.Errorf("fault %d: unlock: %v", fault.Nth, err)
					}
				}
				done <- grants
			}()
		}
		for range 2 {
			select {
			case grants := <-done:
				if grants != rounds {
					v.Errorf("fault %d: %d grants of %d", fault.Nth, grants, rounds)
				}
			case <-time.After(2 * time.Hour):
				v.Fatalf("fault %d: a request is never granted; nodes %v", fault.Nth, v.LockNodes())
			}
		}
		fired = len(injected.Firings()) > 0
		injected.Remove()
		v.Clean()
	})
	return fired
}

// TestCancelAtEachRequest ends the context when the server has received the n-th request of an
// acquire and a release, before and after its execution. No node is left.
func TestCancelAtEachRequest(t *testing.T) {
	t.Parallel()
	sampled := sample.OneIn(t, 5)
	for _, r := range differingRecipes {
		for _, contended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/contended %v", r.Name, contended), func(t *testing.T) { cancelAtEach(t, r, contended, sampled) })
		}
	}
}

func cancelAtEach(t *testing.T, r locktest.Recipe, contended bool, sampled func() bool) {
	for _, action := range []embedded.Action{embedded.DelayRequest, embedded.DelayReply, embedded.DropReply, embedded.CutBefore} {
		if !sampled() {
			continue
		}
		t.Run(action.String(), func(t *testing.T) {
			for nth := 1; nth <= 20; nth++ {
				if !cancelAt(t, r, contended, embedded.Fault{Nth: nth, Action: action, Delay: 300 * time.Millisecond}) || t.Failed() {
					if nth == 1 {
						t.Error("there was no request")
					}
					break
				}
			}
		})
	}
}

func cancelAt(t *testing.T, r locktest.Recipe, contended bool, fault embedded.Fault) (fired bool) {
	t.Helper()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := r.At(locks, "/lock")
		acquire := func(mu locktest.Handle) *actors.Grant {
			g, err := mu.Lock(locktest.Within(v), r.Options...)
			locktest.Must(v, err)
			return g
		}
		var holder *actors.Grant
		if contended {
			others := v.Locks()
			holder = acquire(r.At(others, "/lock"))
		}
		fault.Session = locks.Session().ID
		injected := v.Inject(fault)
		ctx, cancel := context.WithCancelCause(locktest.Within(v))
		why := errors.New("cancelled at the request")
		f := mu.Acquire(ctx, r.Options...)
		if contended {
			go func() {
				<-time.After(10 * time.Second)
				holder.Release()
			}()
		}
		select {
		case <-injected.Fired():
			begun := time.Now()
			cancel(why)
			if g, err := f.Result(); err == nil {
				locktest.Unlock(v, g) // it was granted before
			} else if !errors.Is(err, why) {
				v.Errorf("request %d: %v", fault.Nth, err)
			} else if took := time.Since(begun); took != 0 {
				v.Errorf("request %d: the future has ended %v after the context", fault.Nth, took)
			}
		case <-f.Done():
			g, err := f.Result()
			locktest.Must(v, err)
			release := g.Release()
			select {
			case <-injected.Fired():
			case <-release.Done():
			}
			if _, err := release.Result(); err != nil && (v.Resumes() || !errors.Is(err, actors.ErrSessionLost)) {
				v.Errorf("request %d: release: %v", fault.Nth, err)
			}
		}
		fired = len(injected.Firings()) > 0
		cancel(nil)
		if contended {
			<-holder.Done()
		}
		v.Clean()
		locktest.Unlock(v, acquire(mu))
		v.Clean()
	})
	return fired
}

// The only server stops to answer at each request, and the session ends. The holder loses its
// grant, and both clients hold again when the server answers.
func TestPauseAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, r := range differingRecipes {
		t.Run(r.Name, func(t *testing.T) { pauseAtEach(t, r) })
	}
}

func pauseAtEach(t *testing.T, r locktest.Recipe) {
	for nth := 1; nth <= 15; nth++ {
		locktest.Bubble(t, func(v *locktest.Virtual) {
			locks := v.Locks()
			others := v.Locks()
			injected := v.Inject(embedded.Fault{Nth: nth, Action: embedded.BlackHoleAfter, Session: locks.Session().ID})
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			var both sync.WaitGroup
			for _, locks := range []*actors.Locks{locks, others} {
				mu := r.At(locks, "/lock")
				both.Go(func() {
					for range 3 {
						g, err := mu.Lock(ctx, r.Options...)
						if err != nil {
							v.Errorf("request %d: %v", nth, err)
							return
						}
						if err := g.Unlock(ctx); err != nil {
							locktest.Is(v, err, actors.ErrSessionLost)
						}
					}
				})
			}
			both.Wait()
			injected.Remove()
			v.Clean()
		})
	}
}
