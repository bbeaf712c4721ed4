package recipes

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// callingParent is a parent context that calls a function when one of its children ends.
type callingParent struct {
	context.Context
	done  chan struct{}
	onEnd func()
}

func (p callingParent) Done() <-chan struct{} { return p.done }

// AfterFunc takes the place of Done for package context.
func (p callingParent) AfterFunc(func()) func() bool {
	return func() bool {
		p.onEnd()
		return true
	}
}

// workContexts returns contexts for the work under a grant, and some that are derived from them.
func workContexts(parent context.Context, g *actors.Grant) (all []context.Context) {
	for range 3 {
		work := g.Context(parent)
		below, cancel := context.WithTimeout(work, time.Hour)
		context.AfterFunc(below, cancel)
		all = append(all, work, below)
	}
	return all
}

// callingContexts returns such contexts, and calls f with them at the end of each that Context has
// returned. wait waits for these calls.
func callingContexts(g *actors.Grant, f func(all []context.Context)) (all []context.Context, wait func()) {
	var calls sync.WaitGroup
	made := make(chan struct{})
	all = workContexts(callingParent{context.Background(), make(chan struct{}), func() {
		defer calls.Done()
		<-made
		f(all)
	}}, g)
	calls.Add(len(all) / 2)
	close(made)
	return all, calls.Wait
}

// expectEnds checks that contexts have ended, and their causes.
func expectEnds(t testing.TB, all []context.Context, when string, whys ...error) {
	t.Helper()
	for i, work := range all {
		cause := context.Cause(work)
		if work.Err() == nil || cause == nil {
			t.Errorf("%s: context %d: %v, because of %v", when, i, work.Err(), cause)
			continue
		}
		for _, why := range whys {
			locktest.Is(t, cause, why)
		}
	}
}

// grantEndings are the ends of a grant with a HoldAtMost of a minute.
var grantEndings = []struct {
	name string
	end  func(v *locktest.Virtual, locks *actors.Locks, g *actors.Grant, n *locktest.Network)
	why  error
}{
	{"released", func(_ *locktest.Virtual, _ *actors.Locks, g *actors.Grant, _ *locktest.Network) { g.Release() }, actors.ErrReleased},
	{"held too long", func(*locktest.Virtual, *actors.Locks, *actors.Grant, *locktest.Network) {}, actors.ErrHoldExpired},
	{"session lost", func(v *locktest.Virtual, _ *actors.Locks, g *actors.Grant, n *locktest.Network) {
		n.Disconnect() // else it may notice the deletion of its node first
		v.Expire(g.Session())
		n.Refuse(false)
	}, actors.ErrSessionLost},
	{"closed", func(_ *locktest.Virtual, locks *actors.Locks, _ *actors.Grant, _ *locktest.Network) { locks.Close() }, actors.ErrClosed},
}

// onEachEnding runs f in a bubble for each ending of a grant.
func onEachEnding(t *testing.T, f func(v *locktest.Virtual, g *actors.Grant, end func(), why error)) {
	t.Parallel()
	for _, e := range grantEndings {
		t.Run(e.name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				p := v.Process()
				g := locktest.Lock(v, p.Locks.Mutex(v.LockPath), actors.HoldAtMost(time.Minute))
				f(v, g, func() { e.end(v, p.Locks, g, p.Network) }, e.why)
			})
		})
	}
}

// When Done is closed, all contexts of the grant have ended with their cause. A parent context that
// is called before may call the grant: if one method of the grant reports its end, all others do.
func TestDoneIsLast(t *testing.T) {
	onEachEnding(t, func(v *locktest.Virtual, g *actors.Grant, end func(), why error) {
		done := g.Done()
		all, wait := callingContexts(g, func(all []context.Context) {
			if locktest.IsClosed(done) {
				expectEnds(v, all, "Done is closed", why)
			}
			locktest.Is(v, g.Err(), why)
			expectEnds(v, all, "Err is not nil", why)
			if !locktest.IsClosed(g.Done()) || !locktest.IsClosed(done) {
				v.Error("Done is open, and Err is not nil")
			}
		})
		end()
		<-done
		expectEnds(v, all, "after Done", why)
		wait()
		g.Release()
	})
}

// A grant that is released while a lost connection ends its contexts closes Done after them.
func TestDoneIsLastWhileSuspended(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		p := v.Process(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		mu := p.Locks.Mutex(v.LockPath)
		g := locktest.Lock(v, mu)
		done := g.Done()
		all, wait := callingContexts(g, func(all []context.Context) {
			g.Release()
			if !locktest.IsClosed(done) {
				v.Error("Done is open after Release")
			}
			expectEnds(v, all, "after Release")
		})
		p.Disconnect()
		<-done
		expectEnds(v, all, "after Done")
		wait()
		locktest.Is(v, g.Err(), actors.ErrReleased)
		p.Refuse(false)
		locktest.WaitState(v, p.Locks, messages.SessionState_CONNECTED)
		v.Clean()
	})
}

// Functions that the end of a grant calls may call the grant, and release it. Many goroutines that
// wait for the end, by any channel, all find the grant and all its contexts ended.
func TestManyGoroutinesFindTheEnd(t *testing.T) {
	onEachEnding(t, func(v *locktest.Virtual, g *actors.Grant, end func(), why error) {
		all, done := workContexts(v.Context(), g), g.Done()
		var waiting sync.WaitGroup
		check := func(when string) {
			locktest.Is(v, g.Err(), why)
			expectEnds(v, all, when, why)
			if !locktest.IsClosed(g.Done()) || !locktest.IsClosed(done) {
				v.Errorf("%s: Done is open", when)
			}
		}
		for _, work := range all {
			waiting.Add(1)
			context.AfterFunc(work, func() {
				defer waiting.Done()
				locktest.Is(v, g.Err(), why)
				<-done
				check("AfterFunc")
				g.Release()
			})
			for range 10 {
				waiting.Go(func() { <-done; expectEnds(v, all, "Done", why); check("Done") })
				waiting.Go(func() { <-work.Done(); locktest.Is(v, context.Cause(work), why); check("Done of a context") })
				waiting.Go(func() {
					<-g.Done()
					expectEnds(v, all, "Done", why)
					locktest.Is(v, g.Context(work).Err(), context.Canceled)
				})
			}
		}
		end()
		waiting.Wait()
	})
}

// Goroutines wait for the end of one grant after the other, and find all its contexts ended.
func TestGoroutinesFindTheEnd(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		mu := v.Mutex()
		for range 500 {
			g := locktest.Lock(v, mu)
			all, done := workContexts(v.Context(), g), g.Done()
			var waiting sync.WaitGroup
			for range 4 {
				waiting.Go(func() { <-done; expectEnds(v, all, "Done", actors.ErrReleased) })
			}
			g.Release()
			waiting.Wait()
		}
	})
}
