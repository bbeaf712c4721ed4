package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
)

// errNilContext is the error of a call with a nil context.
var errNilContext = fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, ask.ErrNilContext)

// handled is a message to the actor that is neither a requests.Waited nor one of service Bridge.
type handled interface{ handle(a *bridgeActor) }

func (t task) handle(a *bridgeActor) { t(a) }

// posted is a task that knows what it works on. As a message it takes no memory of its own.
type posted func()

func (f posted) handle(*bridgeActor) { f() }

// PostAhead implements epoch.Owner. As many requests may wait in the mailbox as a process has locks.
func (a *bridgeActor) PostAhead(f func()) { a.self.TellAhead(posted(f)) }

// call starts a request of a goroutine, or answers why it does not.
func (a *bridgeActor) call(r requests.Waited) {
	if c := r.Called(); c.FailFast && a.session.State == messages.SessionState_SUSPENDED {
		r.Fail(messages.Reason_DISCONNECTED, a.bridge.OutageText())
	} else if a.accept(r, c.Epoch, nil) { // otherwise accept has answered Failed
		r.Start(a.epoch)
	}
}

// callIn returns what a request of a goroutine has that is for an epoch.
func (b *Bridge) callIn(epoch uint64) requests.Call {
	return requests.Call{Epoch: epoch, FailFast: b.failFast}
}

// withdraw drops a request whose caller has stopped waiting.
func (b *Bridge) withdraw(r reply.Request) {
	b.ref.Tell(task(func(a *bridgeActor) {
		if a.epoch != nil {
			a.epoch.Close(r)
		}
	}))
}
