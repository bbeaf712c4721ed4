package zkbridge

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// accept opens a request of the epoch with the number, and reports whether it has: the epoch must have the
// present session. It answers all other requests at once. invalid is what is wrong with the request, or nil.
func (a *bridgeActor) accept(r reply.Request, number uint64, invalid error) bool {
	n := 1
	if onlyDeletes(r) {
		n = 0 // it is never over the limit: its nodes would stay, and hold a lock
	}
	if !a.mayOpen(r, number, n, invalid) {
		return false
	}
	a.epoch.Open.Add(r)
	return true
}

// onlyDeletes reports whether a request does nothing but delete nodes.
func onlyDeletes(r reply.Request) bool {
	switch r := r.(type) {
	case *writer.NodeRelease:
		return true
	case *transaction:
		return !slices.ContainsFunc(r.ops, func(op zkconn.Op) bool { return op.Kind != zkconn.OpDelete })
	}
	return false
}

// mayOpen reports whether the bridge can open requests of the epoch with the number, of which n count for
// the limit. Otherwise it answers r at once.
func (a *bridgeActor) mayOpen(r reply.Failer, number uint64, n int, invalid error) bool {
	switch max := a.cfg.maxOutstanding; {
	case invalid != nil:
		r.Fail(messages.Reason_INVALID, invalid.Error())
	case !a.isPresent(number):
		r.Fail(messages.Reason_SESSION_LOST, fmt.Sprintf("the request is for epoch %d; now the session of epoch %d is %v",
			number, a.session.Epoch, a.session.State))
	case max > 0 && n > 0 && a.outstanding()+n > max:
		r.Fail(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests to the bridge wait for an answer; "+
			"Config.MaxOutstanding allows no more than %d", a.outstanding(), max))
	default:
		return true
	}
	return false
}

// isPresent reports whether the epoch with the number has the present session, and that is not lost.
func (a *bridgeActor) isPresent(number uint64) bool {
	return a.epoch != nil && a.session.Epoch == number && a.session.State != messages.SessionState_LOST
}

// requestMessage is a message that the bridge answers.
type requestMessage interface {
	GetId() uint64
	GetEpoch() uint64
}
