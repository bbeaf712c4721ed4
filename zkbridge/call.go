package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// errNilContext is the error of a call with a nil context.
var errNilContext = fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, ask.ErrNilContext)

// callRequest is a request of a goroutine that waits for the result.
type callRequest interface {
	reply.Request
	forEpoch() uint64
	failsFast() bool
	start(ep *epoch)
}

// call is what each callRequest has.
type call struct {
	reply.Place
	epoch    uint64
	failFast bool // see Bridge.FailFast
}

func (c *call) forEpoch() uint64 { return c.epoch }
func (c *call) failsFast() bool  { return c.failFast }

// handled is a message to the actor that is neither a callRequest nor one of service Bridge.
type handled interface{ handle(a *bridgeActor) }

func (t task) handle(a *bridgeActor) { t(a) }

// posted is a task that knows what it works on. As a message it takes no memory of its own.
type posted func()

func (f posted) handle(*bridgeActor) { f() }

// postAhead has the actor call f before it handles the requests that wait in its mailbox: as many may
// have come at one moment as a process has locks. Any goroutine may call postAhead.
func (a *bridgeActor) postAhead(f func()) { a.self.TellAhead(posted(f)) }

// call starts a request of a goroutine, or answers why it does not.
func (a *bridgeActor) call(r callRequest) {
	if r.failsFast() && a.session.state == messages.SessionState_SUSPENDED {
		r.Fail(messages.Reason_DISCONNECTED, a.bridge.OutageText())
	} else if a.accept(r, r.forEpoch(), nil) { // otherwise accept has answered Failed
		r.start(a.epoch)
	}
}

// withdraw drops a request whose caller has stopped waiting.
func (b *Bridge) withdraw(r reply.Request) {
	b.ref.Tell(task(func(a *bridgeActor) {
		if a.epoch != nil {
			a.epoch.close(r)
		}
	}))
}
