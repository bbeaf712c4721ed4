package zkbridge

import (
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// giveUp ends the bridge for good.
func (a *bridgeActor) giveUp(err error) {
	a.fatal = err
	a.self.Stop()
}

// Stopped implements host.Actor.
func (a *bridgeActor) Stopped(failure any) {
	defer a.unblockCallers(failure)
	a.failed = failure != nil
	a.session, _ = a.session.after(sessionClosed, a.session.epoch)
	a.publish(a.closeDetail(failure))
	a.subs = nil
	if !a.failed {
		a.closeLostSessionsNow()
	}
	if a.epoch == nil {
		return
	}
	if a.hadSession && a.epoch.conn.ID() != 0 {
		a.bridge.lastConn = a.epoch.conn
	}
	why, retire := messages.Reason_CLOSED, a.bridge.closeSession
	if a.failed {
		why, retire = messages.Reason_INTERNAL, a.bridge.closeAfterMargin
	}
	a.endEpoch(why, a.closeDetail(failure), retire)
}

func (a *bridgeActor) closeDetail(failure any) string {
	switch {
	case failure != nil:
		return fmt.Sprintf("the bridge has failed: %v", failure)
	case a.fatal != nil:
		return a.fatal.Error()
	}
	return "the bridge is closed"
}

// unblockCallers lets Close and Connected return.
func (a *bridgeActor) unblockCallers(failure any) {
	b := a.bridge
	switch {
	case a.fatal != nil:
		b.err = a.fatal
	case failure != nil:
		b.err = fmt.Errorf("zkbridge: %w: %v", messages.Reason_INTERNAL, failure)
	default:
		b.err = fmt.Errorf("zkbridge: %w", messages.Reason_CLOSED)
	}
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
	case request: // a callRequest or an atomicCreateRequest
		msg.Fail(messages.Reason_CLOSED, a.lastChange.GetDetail())
	case *messages.Subscribe:
		reply.To{Recipient: from, Log: a.cfg.Log}.Tell(a.lastChange)
	case requestMessage:
		a.replyToOf(from, msg).Fail(messages.Reason_CLOSED, a.lastChange.GetDetail())
	}
}
