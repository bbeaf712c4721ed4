package elections

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// The term tells the child why it is over.
func TestSingletonTerm(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.AwaitDeadLetters()
		s := newSingletonTest(v.Fixture)
		self := s.spawn("a", s.locks().Election(s.LockPath, actors.ResignOnRevoke()))
		ends := func(term *actors.SingletonTerm, why error) {
			s.Helper()
			locktest.Closes(s, term.Context().Done(), "the context of the term")
			locktest.Is(s, term.Err(), why)
			locktest.Is(s, context.Cause(term.Context()), why)
		}
		next := func(child childEvent) childEvent {
			s.Helper()
			s.expect("stopping", "a")
			close(child.resume)
			s.expect("stopped", "a")
			return s.expect("started", "a")
		}

		child := s.expect("started", "a")
		locktest.Must(s, errors.Join(child.term.Err(), child.term.Context().Err()))
		s.system.Root.Send(self, actors.Resign{})
		ends(child.term, actors.ErrResigned)

		child = next(child)
		_, err := s.Fixture.Locks().Mutex(s.LockPath).RevokeHolders(locktest.Within(s), 0)
		locktest.Must(s, err)
		ends(child.term, actors.ErrRevoked)

		child = next(child)
		s.system.Root.Send(child.pid, "end")
		s.expect("stopping", "a")
		close(child.resume)
		s.expect("stopped", "a")
		ends(child.term, actors.ErrResigned)

		child = s.expect("started", "a")
		s.system.Root.Stop(self)
		s.expect("stopping", "a")
		ends(child.term, actors.ErrResigned)
		close(child.resume)
		s.expect("stopped", "a")
		s.waitEnded(self)
		s.Clean()
	})
}

// The term looks at the clock: it is over before the message that says so has come.
func TestSingletonTermLooksAtTheClock(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.AwaitDeadLetters()
		s := newSingletonTest(v.Fixture)
		terms, goOn := make(chan *actors.SingletonTerm), make(chan struct{})
		self := s.system.Root.Spawn(s.locks().Election(s.LockPath).Singleton(func(term *actors.SingletonTerm) *actor.Props {
			terms <- term
			<-goOn // the singleton handles no message meanwhile
			return actor.PropsFromFunc(func(actor.Context) {})
		}))
		term := <-terms
		locktest.Must(s, errors.Join(term.Err(), term.Context().Err()))
		v.Pause()
		v.DropConnections()
		<-time.After(2 * locktest.SessionTimeout)
		locktest.Is(s, term.Context().Err(), context.Canceled)
		locktest.Is(s, term.Err(), actors.ErrSessionLost)
		v.Resume()
		goOn <- struct{}{}
		next := <-terms
		locktest.ExpectIncreasing(s, term.Token(), next.Token())
		goOn <- struct{}{}
		locktest.Must(s, s.system.Root.StopFuture(self).Wait())
		locktest.Is(s, next.Err(), actors.ErrResigned)
		s.Clean()
	})
}
