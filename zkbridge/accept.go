package zkbridge

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// accept opens a request for the present session, and reports whether it has. It answers all other
// requests at once. invalid is what is wrong with the request, or nil.
func (a *bridgeActor) accept(r reply.Request, epoch uint64, invalid error) bool {
	n := 1
	if onlyDeletes(r) {
		n = 0 // it is never over the limit: its nodes would stay, and hold a lock
	}
	if !a.mayOpen(r, epoch, n, invalid) {
		return false
	}
	a.epoch.Add(r)
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

// mayOpen reports whether the bridge can open requests for the present session, of which n count for
// the limit. Otherwise it answers r at once.
func (a *bridgeActor) mayOpen(r reply.Failer, epoch uint64, n int, invalid error) bool {
	switch max := a.cfg.maxOutstanding; {
	case invalid != nil:
		r.Fail(messages.Reason_INVALID, invalid.Error())
	case a.session.Epoch != epoch || a.session.State == messages.SessionState_LOST || a.epoch == nil:
		r.Fail(messages.Reason_SESSION_LOST, fmt.Sprintf("the request is for epoch %d; now the session of epoch %d is %v",
			epoch, a.session.Epoch, a.session.State))
	case max > 0 && n > 0 && a.outstanding()+n > max:
		r.Fail(messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests to the bridge wait for an answer; "+
			"Config.MaxOutstanding allows no more than %d", a.outstanding(), max))
	default:
		return true
	}
	return false
}

// requestMessage is a message that the bridge answers.
type requestMessage interface {
	GetId() uint64
	GetEpoch() uint64
}
