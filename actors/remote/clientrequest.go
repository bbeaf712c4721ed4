package remote

import (
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// hold is what a named owner has of the lock: the node by which it holds, once or by re-entries.
type hold struct{ owner, node string }

// openRequest is a request that the server has, or that waits for a session.
type openRequest struct {
	acquire *messages.Acquire // as it goes to the server; nil once it is granted
	epoch   uint64            // in which it was sent; 0: not sent
	number  uint64            // in that epoch
	hold    hold              // zero before the grant
	awaits  bool              // its Cancel is to have an answer: see AwaitNode
}

// awaitedEnd is the end of a request that was cancelled with await_node: the server says when its node is gone.
type awaitedEnd struct {
	epoch   uint64      // in which the request was sent
	overdue *time.Timer // until the actor has an awaitOverdue
	then    func()      // to be called at the end
}

// awaitOverdue is the message of a lock's actor to itself that the server has not answered a Cancel for as long
// as a lease lasts.
type awaitOverdue struct{ number uint64 }

// awaitedEnds has awaited ends by the numbers of their requests.
type awaitedEnds map[uint64]*awaitedEnd

// take takes in a message about a request that was cancelled.
func (a awaitedEnds) take(in incoming) {
	switch in.message.(type) {
	case *messages.Refused, *messages.Released, *messages.Lost:
		a.end(in.number)
	}
}

// end ends the wait for a request, if there is one.
func (a awaitedEnds) end(number uint64) {
	if e := a[number]; e != nil {
		delete(a, number)
		e.overdue.Stop()
		e.then()
	}
}

// endUpTo ends the waits for the requests of a session that is over, and of earlier ones.
func (a awaitedEnds) endUpTo(epoch uint64) {
	for _, number := range slices.Sorted(maps.Keys(a)) {
		if a[number].epoch <= epoch {
			a.end(number)
		}
	}
}

// The messages by which a request ends.

func cancelMessage(number uint64, await bool) *messages.ClientMessage {
	return &messages.ClientMessage{What: &messages.ClientMessage_Cancel{Cancel: &messages.Cancel{RequestId: number, AwaitNode: await}}}
}

func holdExpiredMessage(number uint64) *messages.ClientMessage {
	return &messages.ClientMessage{What: &messages.ClientMessage_HoldExpired{HoldExpired: number}}
}

func releaseMessage(number uint64) *messages.ClientMessage {
	return &messages.ClientMessage{What: &messages.ClientMessage_Release{Release: &messages.Release{RequestId: number}}}
}

// isByNode reports whether a grant, or a part of one, is by a node of the lock at a path.
func isByNode(g *messages.Granted, path string) bool {
	return g.GetPath() == path && g.Node != "" && g.Czxid > 0
}

// knownReason returns INTERNAL for a reason that this process does not know, and for STOPPED, after
// which an owner asks its own lock's actor at once again.
func knownReason(r messages.Reason) requests.Reason {
	if messages.Reason_name[int32(r)] == "" || r == 0 || r == messages.Reason_STOPPED {
		r = messages.Reason_INTERNAL
	}
	return requests.Reason(r)
}

// setEpoch replaces the server's number of its session by this process's.
func setEpoch(g *messages.Granted, epoch uint64) {
	g.Epoch = epoch
	for _, part := range g.Parts {
		part.Epoch = epoch
	}
}
