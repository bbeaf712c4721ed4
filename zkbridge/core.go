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
)

// core is the actor: all its fields belong to its mailbox.
type core struct {
	bridge *Bridge
	cfg    *settings
	self   *host.Ref
	jobs   sync.WaitGroup // those that block, under way

	session  session
	now      *messages.SessionChanged // as last told
	ep       *epoch                   // present one; nil before the first and after the last
	epochs   uint64                   // opened so far
	agreed   bool                     // the first session was granted its timeout
	first    sync.Once                // the first session is ready
	fatal    error                    // why the bridge gives up
	failed   bool                     // it has ended by a panic
	subs     map[ask.Recipient]uint64 // with the number of each subscription
	subbed   uint64
	deadline *time.Timer

	generations generations
	lost        []*lostSession // which may live on at the servers
}

// task is something that the actor tells itself to do, mostly later.
type task func(*core)

// reopenPause is how long to wait before the next epoch if the last one ended
// before it had a session.
const reopenPause = time.Second

func newCore(b *Bridge, self *host.Ref) *core {
	c := &core{bridge: b, cfg: b.cfg, self: self, subs: map[ask.Recipient]uint64{}}
	c.session.state = messages.SessionState_LOST
	c.publish("there was no session yet")
	return c
}

// Receive implements host.Actor.
func (c *core) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *finished:
		msg.lane.finish(msg.then)
	case nodeEvent:
		if c.current(msg.link) {
			if msg.path == GenerationPath { // first of all: no later answer may carry the former one
				c.ep.generationChanged()
			}
			c.ep.watches.happened(c.ep, msg.path, msg.deleted)
		}
	case sessionEvent:
		if c.current(msg.link) {
			c.ep.use(msg.wire)
			c.befalls(msg.event, msg.detail)
		}
	case authRefused:
		if c.current(msg.link) {
			c.locked(msg.err)
		}
	case createAll:
		c.createAll(msg)
	case caller:
		if c.admit(msg, msg.forEpoch()) {
			msg.start(c.ep)
		}
	case task:
		msg(c)
	default:
		if !messages.DispatchBridge(c, from, msg, from) {
			c.cfg.log.Warn("bridge was sent a message that it does not know", "type", fmt.Sprintf("%T", msg))
		}
	}
}

// Flush implements host.Collector: what several messages ask for is sent together.
func (c *core) Flush() {
	if c.ep != nil {
		c.ep.flush()
	}
}

func (c *core) current(l *link) bool { return c.ep != nil && c.ep.link == l }

// open begins the next epoch.
func (c *core) open() {
	if c.ep != nil || c.fatal != nil {
		return
	}
	c.epochs++
	l, err := openLink(c.epochs, c.cfg, c.self.Tell, c.bridge.note)
	if err != nil {
		c.giveUp(err)
		return
	}
	c.ep = newEpoch(c, l)
	c.closeLost()
}

// befalls lets an event happen to the present epoch.
func (c *core) befalls(e event, detail string) {
	was := c.session
	next, changed := was.next(e, c.ep.number)
	switch {
	case changed && e == established && !c.granted():
		return
	case changed:
		c.session = next
		c.publish(detail)
	}
	switch {
	case e == expired && !changed: // there was no session: do not try again in a hurry
		c.endEpoch(messages.Reason_SESSION_LOST, detail, c.bridge.drop)
		time.AfterFunc(reopenPause, func() { c.self.Tell(task((*core).open)) })
	case next.state == messages.SessionState_LOST && changed:
		c.leave(c.ep.link)
		c.endEpoch(messages.Reason_SESSION_LOST, detail, c.bridge.drop)
		c.open()
	case next.state == messages.SessionState_CONNECTED && changed:
		c.connected(was)
	case changed:
		c.ep.up = false
		c.checkDeadline() // it is earlier without a connection
	}
}

// granted checks the timeout of a session that is new. The first one must be what
// was asked for; later it is too late to refuse, locks are in use.
func (c *core) granted() bool {
	if c.session.state != messages.SessionState_LOST {
		return true
	}
	timeout := time.Duration(c.ep.link.timeout.Load())
	switch {
	case timeout == c.cfg.session:
	case c.agreed:
		c.cfg.log.Warn("server grants another session timeout than asked for", "granted", timeout, "asked", c.cfg.session)
	default:
		c.giveUp(fmt.Errorf("zkbridge: %w: asked for %v, granted %v; ask for a timeout within the server's limits",
			ErrSessionTimeout, c.cfg.session, timeout))
		return false
	}
	c.agreed = true
	return true
}

// locked is called when a server does not take the credentials. At the first
// session that is fatal; later it ends the session, and another is tried, since
// locks are in use and somebody may set the server right.
func (c *core) locked(err error) {
	if !c.agreed {
		c.giveUp(fmt.Errorf("zkbridge: %w: %w", messages.Reason_NO_AUTH, err))
		return
	}
	c.cfg.log.Error("server refuses the bridge's credentials", "error", err)
	c.befalls(expired, err.Error())
}

func (c *core) connected(was session) {
	if was.state == messages.SessionState_LOST {
		c.armDeadline()
		c.ep.begin()
		c.ep.askLater()
	} else {
		c.ep.generationChanged() // perhaps: the watch went with the connection
	}
	c.ep.up = true
	c.ep.resume()
}

// publish tells everybody the present state.
func (c *core) publish(detail string) {
	s := Session{State: c.session.state, Epoch: c.session.epoch}
	snap := &snapshot{Session: s}
	if c.ep != nil {
		snap.link = c.ep.link
		snap.ID, snap.Timeout = c.ep.link.id.Load(), time.Duration(c.ep.link.timeout.Load())
	}
	snap.failed = c.failed
	snap.outage(c.bridge.now.Load(), detail)
	c.bridge.now.Store(snap)
	c.now = &messages.SessionChanged{State: s.State, Epoch: s.Epoch, SessionId: snap.ID, Detail: detail}
	for _, to := range slices.SortedFunc(maps.Keys(c.subs), func(a, b ask.Recipient) int { return cmp.Compare(c.subs[a], c.subs[b]) }) {
		c.tell(to)
	}
	c.cfg.log.Info("session is "+s.State.String(), "epoch", s.Epoch, "session", fmt.Sprintf("%#x", snap.ID), "why", detail)
}

// tell tells a subscriber the present state. One that panics is not told again, and keeps
// no other from being told.
func (c *core) tell(to ask.Recipient) {
	if !tell(c.cfg.log, to, c.now) {
		delete(c.subs, to)
	}
}

// armDeadline has checkDeadline called when the session may have to be given up.
// By then ZooKeeper will mostly have answered something, and it is armed again.
func (c *core) armDeadline() {
	ep := c.ep
	check := task(func(c *core) {
		if c.ep == ep {
			c.checkDeadline()
		}
	})
	c.deadline = time.AfterFunc(time.Until(ep.link.deadline()), func() { c.self.Tell(check) })
}

func (c *core) checkDeadline() {
	if !c.ep.link.overdue() {
		c.deadline.Reset(time.Until(c.ep.link.deadline()))
		return
	}
	c.befalls(overdue, "no answer from ZooKeeper for so long that the session may have expired")
}

// endEpoch answers all that is outstanding and lets go of the session; retire ends the link.
func (c *core) endEpoch(why messages.Reason, detail string, retire func(*link)) {
	if c.deadline != nil {
		c.deadline.Stop()
	}
	ep := c.ep
	c.ep = nil
	retire(ep.link)
	ep.end(why, detail)
}

// giveUp ends the bridge for good.
func (c *core) giveUp(err error) {
	c.fatal = err
	c.self.Stop()
}

// Stopped implements host.Actor.
func (c *core) Stopped(failure any) {
	defer c.end(failure)
	c.failed = failure != nil
	c.session, _ = c.session.next(closed, c.session.epoch)
	c.publish(c.farewell(failure))
	c.subs = nil
	if !c.failed {
		c.closeLostAtOnce()
	}
	if c.ep == nil {
		return
	}
	if c.agreed && c.ep.link.id.Load() != 0 {
		c.bridge.last = c.ep.link
	}
	why, retire := messages.Reason_CLOSED, c.bridge.part
	if c.failed {
		why, retire = messages.Reason_INTERNAL, c.bridge.linger
	}
	c.endEpoch(why, c.farewell(failure), retire)
}

func (c *core) farewell(failure any) string {
	switch {
	case failure != nil:
		return fmt.Sprintf("the bridge has failed: %v", failure)
	case c.fatal != nil:
		return c.fatal.Error()
	}
	return "the bridge is closed"
}

// end lets Close and Connected return.
func (c *core) end(failure any) {
	b := c.bridge
	switch {
	case c.fatal != nil:
		b.err = c.fatal
	case failure != nil:
		b.err = fmt.Errorf("zkbridge: %w: %v", messages.Reason_INTERNAL, failure)
	default:
		b.err = fmt.Errorf("zkbridge: %w", messages.Reason_CLOSED)
	}
	close(b.stopped)
	go func() {
		c.jobs.Wait()
		b.links.Wait()
		close(b.gone)
	}()
}
