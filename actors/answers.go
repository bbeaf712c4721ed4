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
func (d *desk) contended(r *request) {
	messages.OwnerRef{To: r.reply.Recipient()}.Contended(&messages.Contended{RequestId: r.key.id})
}

// grant answers the request with granted, which it completes.
func (d *desk) grant(r *request, granted *messages.Granted) {
	r.hold()
	granted.RequestId = r.key.id
	d.replyTraced(r).Answer(granted)
}

// suspend tells those who hold that they may lose what they hold.
func (d *desk) suspend() {
	for r := range d.holders() {
		messages.OwnerRef{To: r.reply.Recipient()}.Suspended(&messages.Suspended{RequestId: r.key.id})
	}
}

// revoke tells who holds that somebody wants the lock back: once, though what it holds may
// be several nodes.
func (d *desk) revoke(r *request) {
	if r.wanted {
		return
	}
	r.wanted = true
	messages.OwnerRef{To: r.reply.Recipient()}.RevokeRequested(&messages.RevokeRequested{RequestId: r.key.id})
}

func (d *desk) holders() iter.Seq[*request] {
	return func(yield func(*request) bool) {
		for _, r := range d.requests.All() {
			if r.granted && !r.released && !r.lost && !yield(r) {
				return
			}
		}
	}
}

// rest is resident's, and tells the claims that a moment has passed.
func (d *desk) rest(idle bool) bool {
	if !d.used {
		d.spare = nil
		if d.requests.Len() == 0 {
			d.requests, d.ids = nil, nil
		}
	}
	for _, r := range d.requests.All() {
		if c, ok := r.reply.Recipient().(*claim); ok {
			c.grow()
		}
	}
	d.unwatchIdle()
	return d.resident.rest(idle)
}

// refuse answers whatever the request asked for last.
func (d *desk) refuse(r *request, why messages.Reason) {
	d.drop(r)
	refusal := d.refusal(r.key.id, why, d.detail)
	switch {
	case why == messages.Reason_TIMED_OUT:
		if outage := d.manager.zk.outage(); outage != "" {
			refusal.Disconnected, refusal.Detail = true, refusal.Detail+"; "+outage
		}
	case why == messages.Reason_CANCELLED && r.instead != 0:
		refusal.Reason, refusal.Detail = r.instead, join(d.path, d.manager.zk.outage())
	}
	if r.released {
		r.release.Refuse(refusal)
		return
	}
	r.reply.Refuse(refusal)
}

func (d *desk) lose(r *request, why messages.Reason) {
	r.lost = true
	if r.anonymous {
		d.drop(r) // nobody could enter again by it
	}
	messages.OwnerRef{To: r.reply.Recipient()}.Lost(&messages.Lost{RequestId: r.key.id, Reason: why, Detail: join(d.path, d.detail)})
}

func (d *desk) released(r *request, stillHeld int) {
	d.drop(r)
	answer := plainReleased
	if _, plain := r.key.from.(*claim); !plain {
		answer = &messages.Released{RequestId: r.key.id, StillHeld: uint32(stillHeld)}
	}
	r.release.Answer(answer)
}

// plainReleased is for claims, which do not look into it.
var plainReleased = &messages.Released{}

// unknown is for a message that is not of a service: what host says of senders, or a
// message that was meant for another actor.
func (d *desk) unknown(msg any) {
	switch msg := msg.(type) {
	case host.Terminated:
		d.senderEnded(msg.Actor)
		return
	case host.Undelivered:
		d.undelivered(msg.Tag)
		return
	case disconnected:
		d.refuseTries()
		return
	case *actor.DeadLetterResponse: // the sender of the request has ended, as it says itself
		return
	}
	d.manager.log.Warn("lock got a message that it does not know", "path", d.path, "message", fmt.Sprintf("%T", msg))
}

// giveUp answers all, for an actor whose state cannot be relied on any more.
func (d *desk) giveUp() {
	if d.manager.isClosed() {
		d.endAll(messages.Reason_CLOSED)
		return
	}
	d.detail = "see the log"
	d.endAll(messages.Reason_INTERNAL)
}

// endAll ends everything that is open.
func (d *desk) endAll(why messages.Reason) {
	for _, r := range d.requests.All() {
		if r.granted && !r.released && !r.lost {
			r.anonymous = true // forget it
			d.lose(r, why)
		} else {
			d.refuse(r, why)
		}
	}
}

func (d *desk) refusal(requestID uint64, why messages.Reason, detail string) *messages.Refused {
	return &messages.Refused{RequestId: requestID, Reason: why, Detail: join(d.path, detail)}
}

func join(path, detail string) string {
	if detail == "" {
		return path
	}
	return path + ": " + detail
}

// tooLate answers what owners say to an actor that has stopped. It tells if it was that.
func (d *desk) tooLate(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireJoint:
		return d.tooLate(from, msg.Acquire)
	case acquireAll:
		for _, one := range msg {
			d.tooLate(from, one)
		}
		return true
	}
	return messages.DispatchLock(late{d}, from, msg, from)
}

// late are its handlers.
type late struct{ *desk }

// Acquire implements messages.LockHandler.
func (d late) Acquire(_ ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	reply.Refuse(d.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

// Cancel implements messages.LockHandler.
func (d late) Cancel(ask.Recipient, *messages.Cancel) {}

// Release implements messages.LockHandler.
func (d late) Release(_ ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	why := messages.Reason_CLOSED // one that retired had no grants
	if d.failed {
		why = messages.Reason_INTERNAL
	}
	reply.Refuse(d.refusal(msg.GetRequestId(), why, "the lock's actor has stopped"))
}
