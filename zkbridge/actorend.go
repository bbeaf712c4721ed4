package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// Stopped implements host.Actor.
func (a *bridgeActor) Stopped(failure any) {
	a.failed = failure != nil
	a.timers.End()
	why, retire, detail := messages.Reason_CLOSED, a.bridge.closeSession, "the bridge is closed"
	a.bridge.err = fmt.Errorf("zkbridge: %w", why)
	switch {
	case a.failed:
		why, retire, detail = messages.Reason_INTERNAL, a.bridge.closeAfterMargin, fmt.Sprintf("the bridge has failed: %v", failure)
		a.bridge.err = fmt.Errorf("zkbridge: %w: %v", why, failure)
	case a.fatal != nil:
		a.bridge.err, detail = a.fatal, a.fatal.Error()
	}
	defer a.unblockCallers()
	defer a.rooms.end(0)
	a.session, _ = a.session.After(epoch.Closed, a.session.Epoch)
	a.publish(detail)
	a.subs = nil
	if !a.failed {
		a.closeLostSessionsNow()
	}
	if a.epoch != nil {
		a.endEpoch(why, detail, retire)
	}
}

// unblockCallers lets Close and Connected return.
func (a *bridgeActor) unblockCallers() {
	b := a.bridge
	close(b.stopped)
	go func() {
		a.blockingJobs.Wait()
		b.closingConns.Wait()
		close(b.ended)
	}()
}

// Refuse implements host.Actor: it answers messages that come after the bridge has ended.
func (a *bridgeActor) Refuse(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case reply.Failer: // a requests.Waited or a writer.Group
		msg.Fail(messages.Reason_CLOSED, a.lastChange.GetDetail())
	case *messages.Subscribe:
		reply.To{Recipient: from, Log: a.cfg.Log}.Tell(a.lastChange)
	case requestMessage:
		a.cfg.replyTo(from, msg).Fail(messages.Reason_CLOSED, a.lastChange.GetDetail())
	case roomWait:
		msg.f()
	}
}
