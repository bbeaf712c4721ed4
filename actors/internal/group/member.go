package group

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Membership is a member of a group, with its actor. The actor has one goroutine for each term: that of the
// function that Join was given.
type Membership struct {
	*Follower
	// ID distinguishes the members of a group.
	ID uint64

	parent context.Context // of the contexts of the terms
	lead   func(p int, term *campaign.Term)
	self   *host.Ref
	done   chan struct{} // closed when the member has left
	failed error         // why the member has left by itself; set before done is closed

	functions sync.WaitGroup  // calls of lead
	unwatch   func()          // ends the watch of what has the member leave
	life      context.Context // ends when the member has left, and with the manager
	endLife   context.CancelFunc

	// Only the actor uses these.
	machine    *partition.Machine
	seen       *partition.View // what the machine knows
	campaigns  []*lockRequest  // by partition; nil without a campaign
	publishing publisher
	left       bool      // the machine has nothing left to end
	finished   bool      // done is closed
	warned     time.Time // when a refusal was logged last
	reported   bool      // a member that is left out
}

var members atomic.Uint64 // numbers the actors of this process

// Messages of a member's actor to itself.
type (
	start    struct{}
	returned struct {
		partition int
		long      bool // the term has lasted for a while
	}
	retry   struct{ partition int }
	changed struct{} // the state of the group
	leave   struct{ why error }
)

// Join starts a member, which leaves when ctx ends, by Leave, and after a final error. It calls lead in a
// goroutine of its own for each term, and gives the partition away after lead has returned. It does not
// block.
func (f *Follower) Join(ctx context.Context, data []byte, lead func(p int, term *campaign.Term)) *Membership {
	var id [8]byte
	rand.Read(id[:]) // testing/cryptotest makes it repeatable
	m := &Membership{Follower: f, ID: binary.BigEndian.Uint64(id[:]), parent: ctx, lead: lead, done: make(chan struct{})}
	m.machine, m.campaigns = partition.NewMachine(m.ID, f.Partitions), make([]*lockRequest, f.Partitions)
	m.publishing = publisher{member: m, data: data}
	m.life, m.endLife = context.WithCancel(f.Manager.Ended())
	f.Manager.System().Start(fmt.Sprintf("actorlock-partitions%d%s", members.Add(1), f.Path), func(self *host.Ref) host.Actor {
		m.self = self
		return m
	})
	m.self.Tell(start{})
	return m
}

// watch has the member leave at the end of its context, and when the locks drain. The actor calls it first,
// as either may have come before.
func (m *Membership) watch() {
	unwatch := context.AfterFunc(m.parent, m.Leave)
	undrain := context.AfterFunc(m.Manager.Draining(), func() { m.self.Tell(leave{messages.Reason_DRAINING}) })
	m.unwatch = func() {
		unwatch()
		undrain()
	}
}

// Leave has the member end its terms, give its partitions away, and leave the list, in this order. It does
// not block: see Done.
func (m *Membership) Leave() { m.self.Tell(leave{}) }

// Done returns a channel that is closed when the member has left, and holds nothing.
func (m *Membership) Done() <-chan struct{} { return m.done }

// Err returns why the member has left by itself, once Done is closed; nil after Leave.
func (m *Membership) Err() error { return m.failed }

// Receive implements host.Actor.
func (m *Membership) Receive(_ ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case start:
		m.watch()
		if !m.publishing.leaving { // it may have left before
			m.publishing.publish()
		}
	case changed:
		m.onChanged()
	case answered:
		m.onAnswered(msg.request, msg.message)
	case returned:
		m.perform(m.machine.Returned(msg.partition, msg.long))
	case retry:
		m.perform(m.machine.Retry(msg.partition))
	case publishDue:
		m.publishing.onDue(msg)
	case rereadDue:
		m.publishing.reread()
	case reread:
		m.publishing.onReread(msg)
	case overdue:
		m.publishing.onOverdue(msg.record)
	case leave:
		m.leaveFor(msg.why)
	}
	invariants.Check(m.machine)
}

// Stopped implements host.Actor.
func (m *Membership) Stopped(failure any) {
	if failure != nil {
		m.abort(fmt.Errorf("the actor of a member of %s has failed: %v: %w", m.Path, failure, messages.Reason_INTERNAL))
	}
}

// Refuse implements host.Actor. The partition of an actor that has failed goes when its function has
// returned.
func (m *Membership) Refuse(_ ask.Recipient, msg any) {
	if msg, is := msg.(returned); is && m.campaigns[msg.partition] != nil {
		m.campaigns[msg.partition].withdraw()
	}
}

// abort ends all that the actor has begun, as it cannot go on.
func (m *Membership) abort(err error) {
	m.failed = err
	for _, r := range slices.Concat(m.campaigns, []*lockRequest{m.publishing.next, m.publishing.present}) {
		if r == nil {
			continue
		}
		r.endTerm(err)
		if !r.runs {
			r.withdraw()
		}
	}
	go func() {
		m.functions.Wait()
		m.finish()
	}()
}

// leaveFor has the member leave, because of an error unless that is nil.
func (m *Membership) leaveFor(why error) {
	if why != nil && m.failed == nil && !m.left {
		m.failed = why
	}
	first := !m.machine.Leaving()
	m.perform(m.machine.Leave())
	if first {
		m.publishing.announce()
	}
}

// onChanged takes in the newest state of the group. A member that is late skips what came before, so that
// it does not fall behind.
func (m *Membership) onChanged() {
	m.publishing.onSeen()
	s := m.state.Load()
	m.report(s.Wrong)
	if s.View == nil && errors.Is(s.Err, messages.Reason_NO_AUTH) { // a lock server's rules may let it acquire only
		m.leaveFor(fmt.Errorf("members of %s cannot be read: %w", m.Path, s.Err))
		return
	}
	v := s.View
	if v == m.seen || m.left {
		return
	}
	m.seen = v
	m.perform(m.machine.Changed(v))
}

// report logs once that a member is left out.
func (m *Membership) report(wrong error) {
	if wrong != nil && !m.reported {
		m.reported = true
		m.Manager.Log.Error("member of a group is left out, which cannot share the partitions with this one", "path", m.Path, "error", wrong,
			"do", "end that member, or this one; all members of a group must have the same number of partitions and read each other's records")
	}
}

func (m *Membership) onAnswered(r *lockRequest, msg any) {
	if r.partition < 0 {
		m.publishing.onAnswered(r, msg)
		return
	}
	if m.campaigns[r.partition] != r {
		return
	}
	switch msg := msg.(type) {
	case *messages.Granted:
		m.perform(m.machine.Granted(r.partition))
	case *messages.Released:
		m.end(r)
		m.perform(m.machine.Released(r.partition))
	case *messages.Lost:
		m.failIfFinal(msg)
		m.perform(m.machine.Lost(r.partition))
	case error:
		m.onRefused(r, msg)
	}
}

// onRefused takes in that a request has failed, or that it is cancelled, or was lost before its release.
func (m *Membership) onRefused(r *lockRequest, err error) {
	switch {
	case r.ended:
		m.end(r)
		m.perform(m.machine.Released(r.partition))
	case errors.Is(err, messages.Reason_STOPPED): // the lock's actor was idle
		r.begin()
	default:
		m.end(r)
		m.warn(r, err)
		m.perform(m.machine.Refused(r.partition))
		m.failIfFinal(err) // last: the machine may begin and withdraw campaigns in it
	}
}

// warn logs one refusal in ten seconds: many partitions may be refused for one reason.
func (m *Membership) warn(r *lockRequest, err error) {
	if campaign.IsTemporary(err) && time.Since(m.warned) > longTerm {
		m.warned = time.Now()
		m.Manager.Log.Warn(campaign.Retrying, "path", r.path, "error", err)
	}
}

// end forgets a campaign that is over.
func (m *Membership) end(r *lockRequest) {
	r.endTerm(campaign.ErrResigned)
	m.campaigns[r.partition] = nil
}

// failIfFinal has the member leave if it could not go on.
func (m *Membership) failIfFinal(err error) {
	if !campaign.IsTemporary(err) {
		m.leaveFor(err)
	}
}

// perform performs the actions of the machine.
func (m *Membership) perform(actions []partition.Action) {
	for _, e := range actions {
		p := e.Partition
		switch e.Kind {
		case partition.Campaign:
			r := &lockRequest{member: m, path: LockPath(m.Path, p), recipe: recipes.Mutex, partition: p, acquire: &messages.Acquire{Data: m.publishing.data}}
			m.campaigns[p] = r
			r.begin()
		case partition.Withdraw:
			m.campaigns[p].withdraw()
		case partition.Start:
			r := m.campaigns[p]
			r.runs = true
			m.functions.Add(1)
			go m.run(p, r.term.Load())
		case partition.End:
			m.campaigns[p].endTerm(campaign.ErrResigned)
		case partition.Release:
			m.campaigns[p].endTerm(campaign.ErrResigned)
			m.campaigns[p].release()
		case partition.Pause:
			m.after(campaign.Pause(e.Failed), retry{p})
		case partition.Left:
			m.left = true
			m.publishing.leave()
		}
	}
	if m.machine.HasChanged() {
		m.publishing.gather()
	}
	m.publishing.giveBack()
}

func (m *Membership) after(d time.Duration, msg any) { time.AfterFunc(d, func() { m.self.Tell(msg) }) }

// longTerm is how long a term lasts after which a function that returns of itself has not failed.
const longTerm = 10 * time.Second

// run calls the function of a term.
func (m *Membership) run(p int, term *campaign.Term) {
	began := time.Now()
	defer func() { // also after runtime.Goexit
		term.End(campaign.ErrResigned)
		m.self.Tell(returned{p, time.Since(began) >= longTerm})
		m.functions.Done()
	}()
	if term.Err() == nil { // it may be lost by now
		m.lead(p, term)
	}
}

// finish says that the member has left, once: one error may end both a request and the member.
func (m *Membership) finish() {
	if m.finished {
		return
	}
	m.finished = true
	m.endLife()
	m.ignore(m)
	m.unwatch()
	close(m.done)
}
