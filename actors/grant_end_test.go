package actors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// callingParent is a parent context of the user that is called when one of its children ends.
type callingParent struct {
	context.Context
	done  chan struct{}
	ended func()
}

func (p callingParent) Done() <-chan struct{} { return p.done }

// AfterFunc is the method that package context calls instead of waiting for Done.
func (p callingParent) AfterFunc(func()) func() bool {
	return func() bool {
		p.ended()
		return true
	}
}

// works returns contexts for the work under a grant, and some that are derived from them.
func works(parent context.Context, g *actors.Grant) (all []context.Context) {
	for range 3 {
		work := g.Context(parent)
		below, cancel := context.WithTimeout(work, time.Hour)
		context.AfterFunc(below, cancel)
		all = append(all, work, below)
	}
	return all
}

// worksThatCall returns such contexts, at the end of which f is called with them. wait blocks until that is
// done.
func worksThatCall(g *actors.Grant, f func(all []context.Context)) (all []context.Context, wait func()) {
	var calls sync.WaitGroup
	made := make(chan struct{})
	all = works(callingParent{context.Background(), make(chan struct{}), func() {
		defer calls.Done()
		<-made
		f(all)
	}}, g)
	calls.Add(len(all) / 2)
	close(made)
	return all, calls.Wait
}

// say checks that contexts have ended, and why.
func say(t testing.TB, all []context.Context, when string, whys ...error) {
	t.Helper()
	for i, work := range all {
		cause := context.Cause(work)
		if work.Err() == nil || cause == nil {
			t.Errorf("%s: context %d: %v, because of %v", when, i, work.Err(), cause)
			continue
		}
		for _, why := range whys {
			is(t, cause, why)
		}
	}
}

// grantEndings are the ends of a grant with a HoldAtMost of a minute.
var grantEndings = []struct {
	name string
	end  func(v *virtual, locks *actors.Locks, g *actors.Grant, n *dialer)
	why  error
}{
	{"released", func(_ *virtual, _ *actors.Locks, g *actors.Grant, _ *dialer) { g.Release() }, actors.ErrReleased},
	{"held too long", func(*virtual, *actors.Locks, *actors.Grant, *dialer) {}, actors.ErrHoldExpired},
	{"session lost", func(v *virtual, _ *actors.Locks, g *actors.Grant, n *dialer) {
		n.disconnect() // else it may hear of the end of its node first
		v.Expire(g.Session())
		n.refuse(false)
	}, actors.ErrSessionLost},
	{"closed", func(_ *virtual, locks *actors.Locks, _ *actors.Grant, _ *dialer) { locks.Close() }, actors.ErrClosed},
}

// onEachEnding runs f in a bubble for each ending of a grant.
func onEachEnding(t *testing.T, f func(v *virtual, g *actors.Grant, end func(), why error)) {
	t.Parallel()
	for _, e := range grantEndings {
		t.Run(e.name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				p := v.process()
				g := lock(v, p.locks.Mutex(v.path), actors.HoldAtMost(time.Minute))
				f(v, g, func() { e.end(v, p.locks, g, p.dialer) }, e.why)
			})
		})
	}
}

// Once Done is closed, all contexts of the grant have ended and say why, also those that are not first. A
// parent context that is called meanwhile may call the grant: once that says that it is over, by whatever
// method, all others do.
func TestDoneIsLast(t *testing.T) {
	onEachEnding(t, func(v *virtual, g *actors.Grant, end func(), why error) {
		done := g.Done()
		all, wait := worksThatCall(g, func(all []context.Context) {
			if isClosed(done) {
				say(v, all, "Done is closed", why)
			}
			is(v, g.Err(), why)
			say(v, all, "Err is not nil", why)
			if !isClosed(g.Done()) || !isClosed(done) {
				v.Error("Done is open, and Err is not nil")
			}
		})
		end()
		<-done
		say(v, all, "after Done", why)
		wait()
		g.Release()
	})
}

// A grant that is released while its contexts end because of a lost connection closes Done after them.
func TestDoneIsLastWhileSuspended(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		p := v.process(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		mu := p.locks.Mutex(v.path)
		g := lock(v, mu)
		done := g.Done()
		all, wait := worksThatCall(g, func(all []context.Context) {
			g.Release()
			if !isClosed(done) {
				v.Error("Done is open after Release")
			}
			say(v, all, "after Release")
		})
		p.disconnect()
		<-done
		say(v, all, "after Done")
		wait()
		is(v, g.Err(), actors.ErrReleased)
		p.refuse(false)
		waitState(v, p.locks, messages.SessionState_CONNECTED)
		v.clean()
	})
}

// What ends with a grant may call it, from a goroutine of its own or not, and may release it. Many that wait
// for its end, by whatever channel, all see all of it.
func TestManySeeTheEnd(t *testing.T) {
	onEachEnding(t, func(v *virtual, g *actors.Grant, end func(), why error) {
		all, done := works(v.Context(), g), g.Done()
		var seen sync.WaitGroup
		sees := func(when string) {
			is(v, g.Err(), why)
			say(v, all, when, why)
			if !isClosed(g.Done()) || !isClosed(done) {
				v.Errorf("%s: Done is open", when)
			}
		}
		for _, work := range all {
			seen.Add(1)
			context.AfterFunc(work, func() {
				defer seen.Done()
				is(v, g.Err(), why)
				<-done
				sees("AfterFunc")
				g.Release()
			})
			for range 10 {
				seen.Go(func() { <-done; say(v, all, "Done", why); sees("Done") })
				seen.Go(func() { <-work.Done(); is(v, context.Cause(work), why); sees("Done of a context") })
				seen.Go(func() { <-g.Done(); say(v, all, "Done", why); is(v, g.Context(work).Err(), context.Canceled) })
			}
		}
		end()
		seen.Wait()
	})
}

// Rounds of grants, each of which ends while goroutines on all processors wait for that.
func TestEndIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		for range 500 {
			g := lock(v, mu)
			all, done := works(v.Context(), g), g.Done()
			var seen sync.WaitGroup
			for range 4 {
				seen.Go(func() { <-done; say(v, all, "Done", actors.ErrReleased) })
			}
			g.Release()
			seen.Wait()
		}
	})
}
