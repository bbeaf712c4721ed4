package zkbridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// bridgeActor is the actor: all its fields belong to its mailbox.
type bridgeActor struct {
	bridge       *Bridge
	cfg          *settings
	self         *host.Ref
	blockingJobs sync.WaitGroup // under way

	session       sessionState
	lastChange    *messages.SessionChanged // as last told to the subscribers
	epoch         *epoch                   // the present one; nil before the first, after the last, and in the pause between two
	epochsOpened  uint64
	hadSession    bool                     // the bridge has accepted a session, so that a refusal by a server is not fatal any more
	readyOnce     sync.Once                // closes bridge.ready when the first session can serve requests
	fatal         error                    // why the bridge has given up, nil if it has not
	failed        bool                     // the bridge has ended by a panic
	subs          map[ask.Recipient]uint64 // with the number of each subscription
	subscriptions uint64                   // so far
	deadline      *time.Timer

	generations  generationHistory
	lostSessions []*lostSession // that may live on at the servers
}

// task is a message to the actor: a function that the actor calls.
type task func(*bridgeActor)

// reopenPause is how long the bridge waits before it opens the next epoch if the last one ended before
// it had a session.
const reopenPause = time.Second

func newBridgeActor(b *Bridge, self *host.Ref) *bridgeActor {
	a := &bridgeActor{bridge: b, cfg: b.cfg, self: self, subs: map[ask.Recipient]uint64{}}
	a.session.state = messages.SessionState_LOST
	a.publish("there was no session yet")
	return a
}

// Receive implements host.Actor.
func (a *bridgeActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case task:
		msg(a)
	case callRequest:
		if a.accept(msg, msg.forEpoch()) {
			msg.start(a.epoch)
		}
	case atomicCreateRequest:
		a.createAtomically(msg)
	default:
		if !messages.DispatchBridge(a, from, msg, from) && !a.receiveEvent(msg) {
			a.cfg.Log.Warn("bridge was sent a message that it does not know", "type", fmt.Sprintf("%T", msg), "do", "correct the sender")
		}
	}
}

// receiveEvent handles an event of a connection. It reports whether msg is one.
func (a *bridgeActor) receiveEvent(msg any) bool {
	switch msg := msg.(type) {
	case zkconn.NodeChanged:
		if a.isCurrent(msg.From) {
			if msg.Path == GenerationPath { // first: no later answer may carry the old generation
				a.epoch.generationChanged()
			}
			a.epoch.watches.onEvent(a.epoch, msg.Path, msg.Deleted)
		}
	case zkconn.Established:
		if a.isCurrent(msg.From) {
			a.epoch.setConn(msg.Conn)
			a.onSessionEvent(sessionEstablished, msg.Detail)
		}
	case zkconn.Disconnected:
		if a.isCurrent(msg.From) {
			a.epoch.setConn(nil)
			a.onSessionEvent(sessionDisconnected, msg.Detail)
		}
	case zkconn.Expired:
		if a.isCurrent(msg.From) {
			a.epoch.setConn(nil)
			a.onSessionEvent(sessionExpired, msg.Detail)
		}
	case zkconn.AuthRefused:
		if a.isCurrent(msg.From) {
			a.onAuthRefused(msg.Err)
		}
	default:
		return false
	}
	return true
}

// Flush implements host.Collector: the bridge sends the requests of several messages together.
func (a *bridgeActor) Flush() {
	ep := a.epoch
	if ep == nil || !ep.connected || !(ep.startQueue.mayStart || ep.started && (ep.writer.MayStart() || ep.singles.mayStart || ep.reads.mayStart)) {
		return
	}
	if conn := ep.conn.Active(); conn != nil {
		conn.Cork()
		defer conn.Uncork()
	}
	ep.startQueue.flush()
	if ep.started {
		ep.writer.Flush() // before singles, to which the writer adds jobs
		ep.singles.flush()
		ep.reads.flush()
	}
}

func (a *bridgeActor) isCurrent(conn *zkconn.SessionConn) bool {
	return a.epoch != nil && a.epoch.conn == conn
}

// open begins the next epoch.
func (a *bridgeActor) open() {
	if a.epoch != nil || a.fatal != nil {
		return
	}
	a.epochsOpened++
	conn, err := zkconn.Open(a.epochsOpened, &a.cfg.Config, a.self.Tell, a.bridge.noteConnectError)
	if err != nil {
		a.giveUp(fmt.Errorf("zkbridge: %w", err))
		return
	}
	a.epoch = newEpoch(a, conn)
	a.closeLostSessions()
}

// onSessionEvent handles an event of the present epoch's session.
func (a *bridgeActor) onSessionEvent(e sessionEvent, detail string) {
	was := a.session
	next, changed := was.after(e, a.epoch.number)
	switch {
	case changed && e == sessionEstablished && !a.checkTimeout():
		return
	case changed:
		a.session = next
		a.publish(detail)
	}
	switch {
	case e == sessionExpired && !changed: // there was no session: open the next after a pause
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLost)
		time.AfterFunc(reopenPause, func() { a.self.Tell(task((*bridgeActor).open)) })
	case next.state == messages.SessionState_LOST && changed:
		a.addLostSession(a.epoch.conn)
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLost)
		a.open()
	case next.state == messages.SessionState_CONNECTED && changed:
		a.connected(was)
	case changed:
		a.epoch.connected = false
		a.checkDeadline() // it is earlier without a connection
	}
}

// checkTimeout checks the timeout of a new session, and reports whether the bridge accepts the
// session. The first one must have the timeout that was asked for. Later it is too late to refuse:
// locks are in use.
func (a *bridgeActor) checkTimeout() bool {
	if a.session.state != messages.SessionState_LOST {
		return true
	}
	timeout := a.epoch.conn.Timeout()
	switch {
	case timeout == a.cfg.SessionTimeout:
	case a.hadSession:
		a.cfg.Log.Warn("server grants another session timeout than asked for", "granted", timeout, "asked", a.cfg.SessionTimeout,
			"do", "set minSessionTimeout and maxSessionTimeout alike on all servers")
	default:
		a.giveUp(fmt.Errorf("zkbridge: %w: asked for %v, granted %v, which the server's minSessionTimeout and maxSessionTimeout allow",
			ErrSessionTimeout, a.cfg.SessionTimeout, timeout))
		return false
	}
	a.hadSession = true
	return true
}

// onAuthRefused handles a server that refuses the credentials. At the first session that is fatal.
// Later it ends the session, and the bridge tries another: locks are in use, and the server's
// configuration may be corrected.
func (a *bridgeActor) onAuthRefused(err error) {
	if !a.hadSession {
		a.giveUp(fmt.Errorf("zkbridge: %w: %w", messages.Reason_NO_AUTH, err))
		return
	}
	a.cfg.Log.Error("server refuses the bridge's credentials", "error", err,
		"do", "restore the credentials of Config.Auth on the server; other servers are tried")
	a.onSessionEvent(sessionExpired, err.Error())
}

func (a *bridgeActor) connected(was sessionState) {
	if was.state == messages.SessionState_LOST {
		a.armDeadline()
		a.epoch.createSessionNode()
		a.epoch.scheduleLeaderCheck()
	} else {
		a.epoch.generationChanged() // it may have changed: its watch went with the connection
	}
	a.epoch.connected = true
	a.epoch.resume()
}

// publish tells the present state to the subscribers and to the methods of Bridge.
func (a *bridgeActor) publish(detail string) {
	s := a.takeSnapshot(detail)
	a.bridge.state.Store(s)
	a.bridge.countState(s.Session)
	a.lastChange = &messages.SessionChanged{State: s.State, Epoch: s.Epoch, SessionId: s.ID, Detail: detail}
	for _, to := range slices.SortedFunc(maps.Keys(a.subs), func(x, y ask.Recipient) int { return cmp.Compare(a.subs[x], a.subs[y]) }) {
		a.tellState(to)
	}
	a.cfg.Log.Info("session is "+s.State.String(), "epoch", s.Epoch, "session", messages.FormatSession(s.ID), "why", detail)
}

// takeSnapshot returns the present state for the methods of Bridge.
func (a *bridgeActor) takeSnapshot(detail string) *snapshot {
	s := &snapshot{Session: Session{State: a.session.state, Epoch: a.session.epoch}, failed: a.failed}
	if a.epoch != nil {
		s.conn = a.epoch.conn
		s.ID, s.Timeout = a.epoch.conn.ID(), a.epoch.conn.Timeout()
	}
	s.setOutage(a.bridge.state.Load(), detail)
	return s
}

// tellState tells the present state to a subscriber. A subscriber that panics is not told again, and
// does not keep the others from being told.
func (a *bridgeActor) tellState(to ask.Recipient) {
	if !reply.Tell(a.cfg.Log, to, a.lastChange) {
		delete(a.subs, to)
	}
}

// armDeadline has checkDeadline called at the deadline. By then ZooKeeper will mostly have answered a
// request, and checkDeadline sets the timer again.
func (a *bridgeActor) armDeadline() {
	ep := a.epoch
	a.deadline = ep.AfterFunc(time.Until(ep.conn.Deadline()), a.checkDeadline)
}

func (a *bridgeActor) checkDeadline() {
	if !a.epoch.conn.Overdue() {
		a.deadline.Reset(time.Until(a.epoch.conn.Deadline()))
		return
	}
	a.onSessionEvent(sessionOverdue, "no answer from ZooKeeper for so long that the session may have expired")
}

// endEpoch leaves the session, and answers all requests that are open. retire ends the connection.
func (a *bridgeActor) endEpoch(why messages.Reason, detail string, retire func(*zkconn.SessionConn)) {
	if a.deadline != nil {
		a.deadline.Stop()
	}
	ep := a.epoch
	a.epoch = nil
	retire(ep.conn)
	ep.end(why, detail)
}

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
