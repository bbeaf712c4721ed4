package zkbridge

import (
	"fmt"
	"sync"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
)

// bridgeActor is the actor. Only the goroutine that serves its mailbox changes its fields.
type bridgeActor struct {
	bridge       *Bridge
	cfg          *settings
	self         *host.Ref
	blockingJobs sync.WaitGroup // under way

	session       epoch.State
	lastChange    *messages.SessionChanged // as last told to the subscribers
	epoch         *epoch.Epoch             // the present one; nil before the first, after the last, and in the pause between two
	epochsOpened  uint64
	wasReady      bool                     // a session was ready for requests: a refusal by a server is not fatal any more
	fatal         error                    // why the bridge has given up, nil if it has not
	failed        bool                     // the bridge has ended by a panic
	subs          map[ask.Recipient]uint64 // with the number of each subscription
	subscriptions uint64                   // so far
	timers        jobs.Timers              // beside those of the epoch

	fresh        newCreates // creates that are to be opened in the present epoch
	rooms        rooms
	former       generation.Former
	lostSessions []*lostSession // that may live on at the servers
}

// task is a message to the actor: a function that the actor calls.
type task func(*bridgeActor)

// Receive implements host.Actor.
func (a *bridgeActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case requests.Waited: // of a goroutine that waits (call.go)
		a.call(msg)
	case handled:
		msg.handle(a)
	default:
		if !messages.DispatchBridge(a, from, msg, from) {
			a.cfg.Log.Warn("bridge was sent a message that it does not know", "type", fmt.Sprintf("%T", msg), "do", "correct the sender")
		}
	}
}

// Create implements messages.BridgeHandler.
func (a *bridgeActor) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	if !a.take(newCreate{from: from, single: msg}, msg) {
		a.openCreate(from, msg, 1)
	}
}

// openCreate opens a create. n is 1, or 0 for one that is within the limit already.
func (a *bridgeActor) openCreate(from ask.Recipient, msg *messages.Create, n int) {
	c := writer.NewCreate(a.replyTo(from, msg), msg, a.cfg.ACL)
	if a.mayOpen(c, msg.GetEpoch(), n, c.Validate(a.cfg.Root)) { // otherwise mayOpen has answered Failed
		a.epoch.Add(c)
		a.epoch.Create(c.Group())
	}
}

// Flush implements host.Collector: when the mailbox is empty, or after 64 messages, the bridge
// sends what the messages asked for. The startJobs make the session ready for requests; from then
// on the other jobs run, too (epoch.go).
func (a *bridgeActor) Flush() {
	a.endRoomWaits()
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
