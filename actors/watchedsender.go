package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// A request belongs to the actor that has sent it, whatever owner it names: it ends with
// that actor, or else a lock would be held for an owner that has gone.

// watchedSender is an actor of the program. The desk watches it while it has open requests, and
// up to the next tick.
type watchedSender struct {
	who  host.Identity
	open []*request // each knows its place
}

// requestSource is what sent a request.
type requestSource struct {
	sender *watchedSender
	at     int        // place in sender.open
	alias  *actor.PID // sender of a Granted to a future
}

// addToSender adds the request to those of its sender.
func (d *requestTable) addToSender(from ask.Recipient, r *request) {
	if isInternal(from) {
		return
	}
	who, isActor := host.IdentityOf(from)
	if !isActor {
		return
	}
	s := d.senders[who]
	if s == nil {
		if err := d.self.Watch(who); err != nil {
			d.manager.log.Error("lock cannot watch an actor; what it holds is not released at its end", "path", d.path, "pid", who.String(), "error", err)
			return
		}
		s = &watchedSender{who: who}
		if d.senders == nil {
			d.senders = map[host.Identity]*watchedSender{}
		}
		d.senders[who] = s
	}
	r.source = &requestSource{sender: s, at: len(s.open)}
	s.open = append(s.open, r)
}

// removeFromSender takes the request off its sender.
func (d *requestTable) removeFromSender(r *request) {
	if r.source == nil {
		return
	}
	if alias := r.source.alias; alias != nil {
		d.self.EndAlias(alias)
	}
	if s := r.source.sender; s != nil {
		last := s.open[len(s.open)-1]
		s.open[r.source.at], last.source.at = last, r.source.at
		s.open[len(s.open)-1] = nil
		s.open = s.open[:len(s.open)-1]
	}
	r.source = nil
}

// unwatchIdleSenders ends the watch of senders without open requests. To do so at each tick
// spares an actor that asks again and again two messages for each request.
func (d *requestTable) unwatchIdleSenders() {
	for who, s := range d.senders {
		if len(s.open) == 0 {
			d.self.Unwatch(who)
			delete(d.senders, who)
		}
	}
}

// markStopped is resident's, and ends all watches.
func (d *requestTable) markStopped(failure any) {
	for who := range d.senders {
		d.self.Unwatch(who)
	}
	clear(d.senders)
	d.actorEntry.markStopped(failure)
}

// senderEnded withdraws what an actor has asked for and not released. What waits goes
// first, so that it is not granted what the others held.
func (d *requestTable) senderEnded(who host.Identity) {
	s := d.senders[who]
	if s == nil {
		return
	}
	delete(d.senders, who)
	for _, granted := range []bool{false, true} {
		for _, r := range s.open {
			if r.granted == granted && !r.released {
				d.manager.log.Warn("actor has ended without Release or Cancel; the lock withdraws its request",
					"path", d.path, "owner", r.key.owner, "pid", who.String(), "request", r.key.id, "held", granted && !r.lost)
				d.withdraw(r, false)
			}
		}
	}
	for _, r := range s.open {
		r.source = nil
	}
}

// withdraw ends the request as Cancel does, by a message that the desk's actor receives
// soon; if waits is true, only a request that still waits then.
func (d *requestTable) withdraw(r *request, waits bool) {
	ask.Send(d.self, &messages.Cancel{RequestId: r.key.id}, withdrawal{r.id, waits})
}

// withdrawal stands for the owner of a request, as the sender of a Cancel.
type withdrawal struct {
	id    requests.ID
	waits bool
}

// Tell implements ask.Recipient. A Cancel has no answer.
func (withdrawal) Tell(any) {}

// replyWithAlias is the request's reply; of a future, one that comes back if the future is
// gone: see undelivered.
func (d *requestTable) replyWithAlias(r *request) ask.Reply[*messages.Granted] {
	future, is := r.reply.Recipient().(host.Sender)
	if !is || !future.IsFuture() {
		return r.reply
	}
	alias, err := d.self.Alias(r.id)
	if err != nil {
		d.manager.log.Error("lock cannot notice that a future has ended", "path", d.path, "error", err)
		return r.reply
	}
	r.source = &requestSource{alias: alias}
	future.Self = alias
	return ask.ReplyTo[*messages.Granted](future)
}

// undelivered withdraws a request whose Granted has reached no future: it had timed out.
func (d *requestTable) undelivered(tag any) {
	id, _ := tag.(requests.ID)
	r := d.requests.At(id)
	if r == nil || r.released {
		return
	}
	d.manager.log.Warn("grant came too late for the future that asked for it; the lock takes it back",
		"path", d.path, "owner", r.key.owner, "request", r.key.id)
	d.withdraw(r, false)
}
