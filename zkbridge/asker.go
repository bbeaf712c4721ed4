package zkbridge

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// asker is the sender of a request, and the marks of its answer.
type asker struct {
	to    ask.Recipient
	id    uint64
	epoch uint64
	log   *slog.Logger // nil if to is the bridge's own
}

// askerOf returns the asker of a message.
func (c *core) askerOf(from ask.Recipient, msg interface {
	GetId() uint64
	GetEpoch() uint64
}) asker {
	return asker{from, msg.GetId(), msg.GetEpoch(), c.cfg.log}
}

func (a asker) tell(msg any) {
	switch {
	case a.to == nil:
	case a.log == nil:
		a.to.Tell(msg)
	default:
		tell(a.log, a.to, msg)
	}
}

// give answers that the request will not be done.
func (a asker) give(why messages.Reason, detail string) {
	a.tell(&messages.Failed{Id: a.id, Epoch: a.epoch, Reason: why, Detail: detail})
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
