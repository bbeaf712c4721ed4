// Package reply answers the requests of the bridge.
package reply

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// To is the sender of a request, with the id and the epoch that the answer repeats.
type To struct {
	Place
	Recipient ask.Recipient // nil: the sender wants no answer
	ID        uint64
	Epoch     uint64
	Log       *slog.Logger // logs a recipient that panics; nil: the recipient is the bridge's own
}

// Tell sends an answer.
func (t To) Tell(msg any) {
	switch {
	case t.Recipient == nil:
	case t.Log == nil:
		t.Recipient.Tell(msg)
	default:
		Tell(t.Log, t.Recipient, msg)
	}
}

// Fail answers that the bridge will not do what was requested.
func (t To) Fail(why messages.Reason, detail string) {
	t.Tell(&messages.Failed{Id: t.ID, Epoch: t.Epoch, Reason: why, Detail: detail})
}

// Tell sends a message to a recipient of the user, and reports whether the recipient has taken the
// message. A recipient that panics must not end the bridge, which others depend on.
func Tell(log *slog.Logger, to ask.Recipient, msg any) (taken bool) {
	if ref, ok := to.(*host.Ref); ok { // does not panic
		ref.Tell(msg)
		return true
	}
	defer func() {
		if failure := recover(); failure != nil {
			log.Error("a recipient panics and has not taken a message of the bridge", "recipient", fmt.Sprintf("%T", to),
				"message", fmt.Sprintf("%T", msg), "failure", failure, "stack", string(debug.Stack()), "do", "report a defect")
		}
	}()
	to.Tell(msg)
	return true
}
