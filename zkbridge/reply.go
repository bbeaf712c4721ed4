package zkbridge

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// replyTo is the sender of a request, and the marks of its answer.
type replyTo struct {
	to    ask.Recipient
	id    uint64
	epoch uint64
	log   *slog.Logger // nil if to is the bridge's own
}

// replyToOf returns the asker of a message.
func (a *bridgeActor) replyToOf(from ask.Recipient, msg interface {
	GetId() uint64
	GetEpoch() uint64
}) replyTo {
	return replyTo{from, msg.GetId(), msg.GetEpoch(), a.cfg.Log}
}

func (r replyTo) tell(msg any) {
	switch {
	case r.to == nil:
	case r.log == nil:
		r.to.Tell(msg)
	default:
		tell(r.log, r.to, msg)
	}
}

// fail answers that the request will not be done.
func (r replyTo) fail(why messages.Reason, detail string) {
	r.tell(&messages.Failed{Id: r.id, Epoch: r.epoch, Reason: why, Detail: detail})
}

// tell tells a user's recipient, and reports whether that has taken the message: a panic of
// the recipient must not end the bridge, which others depend on.
func tell(log *slog.Logger, to ask.Recipient, msg any) (taken bool) {
	if ref, ok := to.(*host.Ref); ok { // does not panic
		ref.Tell(msg)
		return true
	}
	defer func() {
		if failure := recover(); failure != nil {
			log.Error("a recipient panics and has not taken a message of the bridge", "recipient", fmt.Sprintf("%T", to),
				"message", fmt.Sprintf("%T", msg), "failure", failure, "stack", string(debug.Stack()))
		}
	}()
	to.Tell(msg)
	return true
}
