package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
)

func newBridgeActor(b *connection, self *host.Ref) *bridgeActor {
	a := &bridgeActor{bridge: b, cfg: b.cfg, self: self, subs: map[ask.Recipient]uint64{}}
	a.timers = jobs.NewTimers(a.PostAhead)
	a.timers.After(probePause, a.probeUnknown)
	a.session.State = messages.SessionState_LOST
	a.store("there was no session yet")
	return a
}

// Receive implements host.Actor.
func (a *bridgeActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case requests.Waited: // of a goroutine that waits (call.go)
		a.call(msg)
	case *writer.Group: // of CreateAtomically
		a.create(msg)
	case handled:
		msg.handle(a)
	default:
		if !messages.DispatchBridge(a, from, msg, from) {
			a.cfg.Log.Warn("bridge was sent a message that it does not know", "type", fmt.Sprintf("%T", msg), "do", "correct the sender")
		}
	}
}

// Flush implements host.Collector: when the mailbox is empty, or after 64 messages, the bridge
// sends what the messages asked for. The startJobs make the session ready for requests; from then
// on the other jobs run, too (epoch.go).
func (a *bridgeActor) Flush() {
	a.rooms.end(a.outstanding())
	ep := a.epoch
	if ep == nil || !a.IsConnected() || !ep.HasWork() && !(ep.Ready && a.hasNewCreates()) {
		return
	}
	if conn := ep.Conn.Active(); conn != nil {
		conn.Cork()
		defer conn.Uncork()
	}
	ep.Jobs().Start.Flush()
	if ep.Ready {
		a.takeUpNewCreates()
		ep.Writer.Flush() // before the jobs, to which the writer adds jobs
		for _, j := range ep.Jobs().Ready() {
			j.Flush()
		}
	}
}

func (w roomWait) handle(a *bridgeActor) { a.rooms.await(w, a.outstanding()) }
