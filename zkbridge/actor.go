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
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// bridgeActor is the actor: all its fields belong to its mailbox.
type bridgeActor struct {
	bridge       *Bridge
	cfg          *settings
	self         *host.Ref
	blockingJobs sync.WaitGroup // those that block, under way

	session        sessionState
	lastChange     *messages.SessionChanged // as last told
	epoch          *epoch                   // present one; nil before the first and after the last
	epochsOpened   uint64                   // opened so far
	timeoutGranted bool                     // the first session was granted its timeout
	readyOnce      sync.Once                // the first session is ready
	fatal          error                    // why the bridge gives up
	failed         bool                     // it has ended by a panic
	subs           map[ask.Recipient]uint64 // with the number of each subscription
	subscriptions  uint64
	deadline       *time.Timer

	generations  generations
	lostSessions []*lostSession // which may live on at the servers
}

// task is something that the actor tells itself to do, mostly later.
type task func(*bridgeActor)

// reopenPause is how long to wait before the next epoch if the last one ended
// before it had a session.
const reopenPause = time.Second

func newBridgeActor(b *Bridge, self *host.Ref) *bridgeActor {
	c := &bridgeActor{bridge: b, cfg: b.cfg, self: self, subs: map[ask.Recipient]uint64{}}
	c.session.state = messages.SessionState_LOST
	c.publish("there was no session yet")
	return c
}

// Receive implements host.Actor.
func (a *bridgeActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *jobDone:
		msg.runner.onDone(msg.then)
	case zkconn.NodeChanged:
		if a.isCurrent(msg.From) {
			if msg.Path == GenerationPath { // first of all: no later answer may carry the former one
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
	case atomicCreateRequest:
		a.atomicCreate(msg)
	case callRequest:
		if a.accept(msg, msg.forEpoch()) {
			msg.start(a.epoch)
		}
	case task:
		msg(a)
	default:
		if !messages.DispatchBridge(a, from, msg, from) {
			a.cfg.Log.Warn("bridge was sent a message that it does not know", "type", fmt.Sprintf("%T", msg))
		}
	}
}

// Flush implements host.Collector: what several messages ask for is sent together.
func (a *bridgeActor) Flush() {
	if a.epoch != nil {
		a.epoch.flush()
	}
}

func (a *bridgeActor) isCurrent(l *zkconn.SessionConn) bool {
	return a.epoch != nil && a.epoch.conn == l
}

// open begins the next epoch.
func (a *bridgeActor) open() {
	if a.epoch != nil || a.fatal != nil {
		return
	}
	a.epochsOpened++
	l, err := zkconn.Open(a.epochsOpened, &a.cfg.Config, a.self.Tell, a.bridge.noteConnectError)
	if err != nil {
		a.giveUp(err)
		return
	}
	a.epoch = newEpoch(a, l)
	a.closeLostSessions()
}

// onSessionEvent lets an event happen to the present epoch.
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
	case e == sessionExpired && !changed: // there was no session: do not try again in a hurry
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

// checkTimeout checks the timeout of a session that is new. The first one must be what
// was asked for; later it is too late to refuse, locks are in use.
func (a *bridgeActor) checkTimeout() bool {
	if a.session.state != messages.SessionState_LOST {
		return true
	}
	timeout := a.epoch.conn.Timeout()
	switch {
	case timeout == a.cfg.SessionTimeout:
	case a.timeoutGranted:
		a.cfg.Log.Warn("server grants another session timeout than asked for", "granted", timeout, "asked", a.cfg.SessionTimeout)
	default:
		a.giveUp(fmt.Errorf("zkbridge: %w: asked for %v, granted %v; ask for a timeout within the server's limits",
			ErrSessionTimeout, a.cfg.SessionTimeout, timeout))
		return false
	}
	a.timeoutGranted = true
	return true
}

// onAuthRefused is called when a server does not take the credentials. At the first
// session that is fatal; later it ends the session, and another is tried, since
// locks are in use and somebody may set the server right.
func (a *bridgeActor) onAuthRefused(err error) {
	if !a.timeoutGranted {
		a.giveUp(fmt.Errorf("zkbridge: %w: %w", messages.Reason_NO_AUTH, err))
		return
	}
	a.cfg.Log.Error("server refuses the bridge's credentials", "error", err)
	a.onSessionEvent(sessionExpired, err.Error())
}

func (a *bridgeActor) connected(was sessionState) {
	if was.state == messages.SessionState_LOST {
		a.armDeadline()
		a.epoch.createOwnNode()
		a.epoch.scheduleLeaderCheck()
	} else {
		a.epoch.generationChanged() // perhaps: the watch went with the connection
	}
	a.epoch.connected = true
	a.epoch.resume()
}

// publish tells everybody the present state.
func (a *bridgeActor) publish(detail string) {
	s := Session{State: a.session.state, Epoch: a.session.epoch}
	snap := &snapshot{Session: s}
	if a.epoch != nil {
		snap.link = a.epoch.conn
		snap.ID, snap.Timeout = a.epoch.conn.ID(), a.epoch.conn.Timeout()
	}
	snap.failed = a.failed
	snap.setOutage(a.bridge.state.Load(), detail)
	a.bridge.state.Store(snap)
	a.lastChange = &messages.SessionChanged{State: s.State, Epoch: s.Epoch, SessionId: snap.ID, Detail: detail}
	for _, to := range slices.SortedFunc(maps.Keys(a.subs), func(x, y ask.Recipient) int { return cmp.Compare(a.subs[x], a.subs[y]) }) {
		a.tellState(to)
	}
	a.cfg.Log.Info("session is "+s.State.String(), "epoch", s.Epoch, "session", fmt.Sprintf("%#x", snap.ID), "why", detail)
}

// tellState tells a subscriber the present state. One that panics is not told again, and keeps
// no other from being told.
func (a *bridgeActor) tellState(to ask.Recipient) {
	if !tell(a.cfg.Log, to, a.lastChange) {
		delete(a.subs, to)
	}
}

// armDeadline has checkDeadline called when the session may have to be given up.
// By then ZooKeeper will mostly have answered something, and it is armed again.
func (a *bridgeActor) armDeadline() {
	ep := a.epoch
	check := task(func(c *bridgeActor) {
		if c.epoch == ep {
			c.checkDeadline()
		}
	})
	a.deadline = time.AfterFunc(time.Until(ep.conn.Deadline()), func() { a.self.Tell(check) })
}

func (a *bridgeActor) checkDeadline() {
	if !a.epoch.conn.Overdue() {
		a.deadline.Reset(time.Until(a.epoch.conn.Deadline()))
		return
	}
	a.onSessionEvent(sessionOverdue, "no answer from ZooKeeper for so long that the session may have expired")
}

// endEpoch answers all that is outstanding and lets go of the session; retire ends the link.
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
	defer a.release(failure)
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
	if a.timeoutGranted && a.epoch.conn.ID() != 0 {
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

// release lets Close and Connected return.
func (a *bridgeActor) release(failure any) {
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
