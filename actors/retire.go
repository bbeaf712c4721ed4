package actors

import (
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// An idle lock's actor stops, so that it costs nothing: the manager forgets it, and
// whoever still sends it a request is answered STOPPED and asks the manager again.

func (l *lock) scheduleTick() {
	l.ticks = time.AfterFunc(l.manager.tick, func() { l.self.Tell(tick{}) })
}

// tick is a moment's end.
func (l *lock) tick() {
	l.quiet += l.manager.tick
	if l.used || !l.state.Idle() || len(l.requests) > 0 {
		l.used, l.quiet = false, 0
	}
	if l.quiet >= l.manager.idle && l.manager.retire(l) {
		l.retired = true
		l.self.Stop()
		return
	}
	step(l, queue.Tick{})
	l.scheduleTick()
}

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Nobody who asked is left without an answer, and no node is left behind.
func (l *lock) Stopped(failure any) {
	defer l.manager.stopped(l)
	l.retired, l.failed = true, failure != nil
	l.ticks.Stop()
	l.bridge.SendUnsubscribe(&messages.Unsubscribe{}, l.self)
	if failure == nil {
		step(l, queue.Close{Why: queue.Closed})
	} else {
		l.giveUp()
	}
}

// giveUp is for a lock whose state cannot be relied on any more.
func (l *lock) giveUp() {
	l.detail = "see the log"
	for _, r := range l.requests {
		if r.granted && !r.released && !r.lost {
			r.anonymous = true // forget it
			l.lose(r, messages.Reason_INTERNAL)
		} else {
			l.refuse(r, messages.Reason_INTERNAL)
		}
	}
	for serial, node := range l.state.Nodes() {
		l.releaseNode(serial, node)
	}
}

// Refuse implements host.Actor: it answers what comes after the end.
func (l *lock) Refuse(from ask.Recipient, msg any) {
	if created, ok := msg.(*messages.Created); ok {
		l.releaseNode(created.Id, created.Node)
		return
	}
	messages.DispatchLock(tooLate{l}, from, msg, from)
}

// tooLate answers owners for a lock that has stopped.
type tooLate struct{ *lock }

func (l tooLate) Acquire(_ ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	reply.Refuse(l.refusal(msg.GetRequestId(), messages.Reason_STOPPED, ""))
}

func (l tooLate) Cancel(ask.Recipient, *messages.Cancel) {}

func (l tooLate) Release(_ ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	why := messages.Reason_CLOSED // one that retired had no grants
	if l.failed {
		why = messages.Reason_INTERNAL
	}
	reply.Refuse(l.refusal(msg.GetRequestId(), why, "the lock's actor has stopped"))
}
