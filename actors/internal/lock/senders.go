package lock

import (
	"cmp"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// A request belongs to the actor that has sent it, whatever owner it names: it ends with that
// actor. Otherwise the lock would stay held for an owner that has gone.

// watchedSender has the open requests of an actor of the program. The lock's actor watches that
// until the tick at which it has none.
type watchedSender map[*Request]struct{}

// addToSender adds the request to those of its sender.
func (l *Actor) addToSender(from ask.Recipient, r *Request) {
	if r.key == nil || r.FromLockActor {
		return
	}
	who, isActor := host.IdentityOf(from)
	if !isActor {
		return
	}
	sender := l.senders[who]
	if sender == nil {
		if err := l.Self.Watch(who); err != nil {
			l.Manager.Log.Error("lock cannot watch an actor; what it holds is not released at its end", "path", l.Path, "pid", who.String(), "error", err,
				"do", "look at the actor system; restart the process if it goes on")
			return
		}
		sender = watchedSender{}
		if l.senders == nil {
			l.senders = map[host.Identity]watchedSender{}
		}
		l.senders[who] = sender
	}
	r.needExtras().sender = sender
	sender[r] = struct{}{}
}

// removeFromSender takes the request off its sender.
func (l *Actor) removeFromSender(r *Request) {
	x := r.extras
	if x == nil {
		return
	}
	if x.alias != nil {
		l.Self.EndAlias(x.alias)
	}
	delete(x.sender, r)
}

// unwatchIdleSenders ends the watches of senders without open requests. It is called at ticks:
// an actor that asks again and again would cost two messages for each request otherwise.
func (l *Actor) unwatchIdleSenders() {
	for who, sender := range l.senders {
		if len(sender) == 0 {
			l.Self.Unwatch(who)
			delete(l.senders, who)
		}
	}
}

// senderEnded withdraws the open requests of an actor that has ended. The waiting requests go
// first, so that none of them is granted what the others held.
func (l *Actor) senderEnded(who host.Identity) {
	sender := l.senders[who]
	if sender == nil {
		return
	}
	delete(l.senders, who)
	inOrder := slices.SortedFunc(maps.Keys(sender), func(a, b *Request) int { return cmp.Compare(a.ID, b.ID) })
	for _, granted := range []bool{false, true} {
		for _, r := range inOrder {
			if (r.Granted != nil) == granted && !r.Released {
				l.Manager.Log.Warn("actor has ended without Release or Cancel; the lock withdraws its request",
					"path", l.Path, "owner", r.key.owner, "pid", who.String(), "request", r.Number(), "held", granted && r.lost == 0, "since", l.Manager.Session.TimeOf(r.since),
					"do", "have the actor send Release or Cancel when it stops")
				l.withdraw(r)
			}
		}
	}
}

// recipientOfGranted returns the owner as the recipient of Granted. A future of protoactor (RequestFuture) gets
// it from an alias, which is a second PID of this actor: if the future is gone, Granted comes back to the alias,
// and the lock takes the grant back (undelivered).
func (l *Actor) recipientOfGranted(r *Request) ask.Recipient {
	future, is := r.owner.(host.Sender)
	if !is || !future.IsFuture() {
		return r.owner
	}
	alias, err := l.Self.Alias(r.ID)
	if err != nil {
		l.Manager.Log.Error("lock cannot notice that a future has ended", "path", l.Path, "error", err,
			"do", "look at the actor system; restart the process if it goes on")
		return r.owner
	}
	r.needExtras().alias = alias
	future.Self = alias
	return future
}

// undelivered withdraws a request whose Granted has not reached its future: that had timed out.
func (l *Actor) undelivered(tag any) {
	id, _ := tag.(requests.ID)
	r := l.table.requests.At(id)
	if r == nil || r.Released {
		return
	}
	l.Manager.Log.Warn("grant came too late for the future that asked for it; the lock takes it back",
		"path", l.Path, "owner", r.key.owner, "request", r.Number(),
		"do", "set wait_nanos to the time-out of the future")
	l.withdraw(r)
}
