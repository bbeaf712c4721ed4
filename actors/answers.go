package actors

import (
	"fmt"
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// What a desk tells owners.

// contended tells the owner that others wait for what it holds.
func (d *requestTable) contended(r *request) {
	messages.OwnerRef{To: r.reply.Recipient()}.Contended(&messages.Contended{RequestId: r.key.id})
}

// grant answers the request with granted, which it completes.
func (d *requestTable) grant(r *request, granted *messages.Granted) {
	r.markGranted()
	granted.RequestId = r.key.id
	d.replyWithAlias(r).Answer(granted)
}

// suspend tells those who hold that they may lose what they hold.
func (d *requestTable) suspend() {
	for r := range d.holders() {
		messages.OwnerRef{To: r.reply.Recipient()}.Suspended(&messages.Suspended{RequestId: r.key.id})
	}
}

// revoke tells who holds that somebody wants the lock back: once, though what it holds may
// be several nodes.
func (d *requestTable) revoke(r *request) {
	if r.revokeSent {
		return
	}
	r.revokeSent = true
	messages.OwnerRef{To: r.reply.Recipient()}.RevokeRequested(&messages.RevokeRequested{RequestId: r.key.id})
}

func (d *requestTable) holders() iter.Seq[*request] {
	return func(yield func(*request) bool) {
		for _, r := range d.requests.All() {
			if r.granted && !r.released && !r.lost && !yield(r) {
				return
			}
		}
	}
}

// onTick is resident's, and tells the claims that a moment has passed.
func (d *requestTable) onTick(idle bool) bool {
	if !d.used {
		d.reusable = nil
		if d.requests.Len() == 0 {
			d.requests, d.ids = nil, nil
		}
	}
	for _, r := range d.requests.All() {
		if c, ok := r.reply.Recipient().(*acquisition); ok {
			c.armLeakDetection()
		}
	}
	d.unwatchIdleSenders()
	return d.actorEntry.onTick(idle)
}

// refuse answers whatever the request asked for last.
func (d *requestTable) refuse(r *request, why messages.Reason) {
	d.remove(r)
	refusal := d.refusal(r.key.id, why, d.detail)
	switch {
	case why == messages.Reason_TIMED_OUT:
		if outage := d.manager.zk.outage(); outage != "" {
			refusal.Disconnected, refusal.Detail = true, refusal.Detail+"; "+outage
		}
	case why == messages.Reason_CANCELLED && r.cancelReason != 0:
		refusal.Reason, refusal.Detail = r.cancelReason, join(d.path, d.manager.zk.outage())
	}
	if r.released {
		r.release.Refuse(refusal)
		return
	}
	r.reply.Refuse(refusal)
}

func (d *requestTable) lose(r *request, why messages.Reason) {
	r.lost = true
	if r.anonymous {
		d.remove(r) // nobody could enter again by it
	}
	messages.OwnerRef{To: r.reply.Recipient()}.Lost(&messages.Lost{RequestId: r.key.id, Reason: why, Detail: join(d.path, d.detail)})
}

func (d *requestTable) released(r *request, stillHeld int) {
	d.remove(r)
	answer := plainReleased
	if _, plain := r.key.from.(*acquisition); !plain {
		answer = &messages.Released{RequestId: r.key.id, StillHeld: uint32(stillHeld)}
	}
	r.release.Answer(answer)
}

// plainReleased is for claims, which do not look into it.
var plainReleased = &messages.Released{}

// receiveOther is for a message that is not of a service: what host says of senders, or a
// message that was meant for another actor.
func (d *requestTable) receiveOther(msg any) {
	switch msg := msg.(type) {
	case host.Terminated:
		d.senderEnded(msg.Actor)
		return
	case host.Undelivered:
		d.undelivered(msg.Tag)
		return
	case connectionLost:
		d.refuseTries()
		return
	case *actor.DeadLetterResponse: // the sender of the request has ended, as it says itself
		return
	}
	d.manager.log.Warn("lock got a message that it does not know", "path", d.path, "message", fmt.Sprintf("%T", msg))
}

// failAll answers all, for an actor whose state cannot be relied on any more.
func (d *requestTable) failAll() {
	if d.manager.isClosed() {
		d.endAll(messages.Reason_CLOSED)
		return
	}
	d.detail = "see the log"
	d.endAll(messages.Reason_INTERNAL)
}

// endAll ends everything that is open.
func (d *requestTable) endAll(why messages.Reason) {
	for _, r := range d.requests.All() {
		if r.granted && !r.released && !r.lost {
			r.anonymous = true // forget it
			d.lose(r, why)
		} else {
			d.refuse(r, why)
		}
	}
}

func (d *requestTable) refusal(requestID uint64, why messages.Reason, detail string) *messages.Refused {
	return &messages.Refused{RequestId: requestID, Reason: why, Detail: join(d.path, detail)}
}

func join(path, detail string) string {
	if detail == "" {
		return path
	}
	return path + ": " + detail
}

// refuseAfterStop answers what owners say to an actor that has stopped. It tells if it was that.
func (d *requestTable) refuseAfterStop(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		return d.refuseAfterStop(from, msg.Acquire)
	case acquireLeases:
		for _, one := range msg {
			d.refuseAfterStop(from, one)
		}
		return true
	}
	return messages.DispatchLock(afterStop{d}, from, msg, from)
}

// afterStop are its handlers.
type afterStop struct{ *requestTable }

// Acquire implements messages.LockHandler.
func (d afterStop) Acquire(_ ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	reply.Refuse(d.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (d afterStop) Cancel(ask.Recipient, *messages.Cancel) {}

// Release implements messages.LockHandler.
func (d afterStop) Release(_ ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	why := messages.Reason_CLOSED // one that retired had no grants
	if d.failed {
		why = messages.Reason_INTERNAL
	}
	reply.Refuse(d.refusal(msg.GetRequestId(), why, "the lock's actor has stopped"))
}
