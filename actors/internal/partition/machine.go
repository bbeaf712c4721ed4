package partition

import (
	"fmt"
	"slices"
)

// Machine is what one member does about the partitions of its group. Its actor feeds it what happens,
// and performs the actions that each call returns.
//
// The member campaigns for a partition if it is the best member for it or the second one. It resigns if
// it is not the best one, as soon as the best one has published that it waits.
type Machine struct {
	id      uint64
	members int             // of the group, to this member's knowledge
	sharing []*MemberRecord // those of them that share the partitions
	ids     []uint64        // of sharing, for which places were made
	places  []Place
	self    int // the index of this member in sharing; -1 while it is not there
	parts   []part
	busy    int  // partitions that are not idle or paused
	leaving bool // for ever
	changed bool // the publication may have changed since it was asked for
	out     []Action
}

// part is one partition, as this member sees it.
type part struct {
	phase  phase
	failed uint8 // campaigns in a row that failed, or whose terms ended by themselves
	again  bool  // in the phase releasing: pause before the next campaign
	// gaveTo is the record of the best member for which this one has resigned: each record is a
	// reason to resign once. A member whose record is not true any more cannot have the partition go
	// round for ever. One that goes on to wait publishes again.
	gaveTo int64
}

// phase is where the campaign for a partition is. Only idle and paused ones begin another one.
type phase uint8

const (
	idle      phase = iota
	paused          // until Retry
	waiting         // the request is sent
	leading         // the function runs
	ending          // the context of the term has ended, and the function has yet to return
	lost            // the grant is lost, and the function has yet to return
	releasing       // the node is to be deleted, and the lock has yet to confirm it
)

// Action is what the actor does, in order.
type Action struct {
	Kind      ActionKind
	Partition int
	// Failed is, for a Pause, how many campaigns have failed before.
	Failed int
}

// ActionKind is a kind of Action.
type ActionKind uint8

// The actions.
const (
	// Campaign requests the partition's lock.
	Campaign ActionKind = iota
	// Withdraw cancels the request, in whatever state it is. The answer is Released, once its node is gone.
	Withdraw
	// Start starts the function of the term.
	Start
	// End ends the context of the term. The answer is Returned.
	End
	// Release releases the partition's lock. The answer is Released.
	Release
	// Pause waits, for longer the more has failed. The answer is Retry.
	Pause
	// Left says that nothing is left to end. It comes once, and last.
	Left
)

// NewMachine returns the machine of a member of a group of n partitions.
func NewMachine(id uint64, n int) *Machine {
	return &Machine{id: id, self: -1, parts: make([]part, n)}
}

// Changed takes in what the members have published.
func (m *Machine) Changed(v *View) []Action {
	m.members, m.sharing = len(v.Members), v.sharing()
	ids := make([]uint64, len(m.sharing))
	for i, member := range m.sharing {
		ids[i] = member.ID
	}
	m.self = slices.Index(ids, m.id)
	if m.places == nil || !slices.Equal(ids, m.ids) {
		m.ids, m.places = ids, Places(ids, len(m.parts))
		m.changed = true // the member may be the best one for a partition that it waits for already
	}
	return m.decideAll()
}

// Leave has the member end all terms and requests, and then be Left.
func (m *Machine) Leave() []Action {
	if m.leaving {
		return nil
	}
	m.leaving = true
	return m.decideAll()
}

// Granted takes in that the lock of p is this member's. If the best member waits, it is passed on
// before a term begins.
func (m *Machine) Granted(p int) []Action {
	if at := &m.parts[p]; at.phase == waiting {
		if m.shallResign(p) {
			m.release(p, Release, false)
		} else {
			at.phase = leading
			m.emit(Start, p)
			m.decide(p)
		}
	}
	return m.take() // otherwise the Withdraw takes it back
}

// Refused takes in that a request has failed, for a time.
func (m *Machine) Refused(p int) []Action {
	switch at := &m.parts[p]; at.phase {
	case waiting:
		m.end(p, true)
	case releasing:
		m.end(p, at.again)
	}
	return m.take()
}

// Released takes in that the lock has confirmed a Withdraw or a Release, or that the grant was lost
// before.
func (m *Machine) Released(p int) []Action {
	if at := &m.parts[p]; at.phase == releasing {
		m.end(p, at.again)
	}
	return m.take()
}

// Lost takes in that the grant of a partition is lost, whose context has ended by that.
func (m *Machine) Lost(p int) []Action {
	switch at := &m.parts[p]; at.phase {
	case leading, ending:
		at.phase, m.changed = lost, true
	case releasing:
		m.end(p, at.again)
	}
	return m.take()
}

// Returned takes in that the function of a term has returned; long is that the term has lasted for a
// while. A function that returns of itself, again and again, leads to longer and longer pauses.
func (m *Machine) Returned(p int, long bool) []Action {
	at := &m.parts[p]
	if long {
		at.failed = 0
	}
	switch at.phase {
	case leading:
		m.release(p, Release, true)
	case ending:
		at.failed = 0
		m.release(p, Release, false)
	case lost:
		m.end(p, false)
	}
	return m.take()
}

// Retry takes in that the pause of a partition is over.
func (m *Machine) Retry(p int) []Action {
	if at := &m.parts[p]; at.phase == paused {
		at.phase = idle
		m.decide(p)
	}
	return m.take()
}

// HasChanged reports whether the publication may have changed since Publication was called.
func (m *Machine) HasChanged() bool { return m.changed }

// Publication returns what the member publishes.
func (m *Machine) Publication() (leads, waits Bits) {
	m.changed = false
	leads, waits = NewBits(len(m.parts)), NewBits(len(m.parts))
	for p := range m.parts {
		leads.Put(p, m.Leads(p))
		waits.Put(p, m.Waits(p))
	}
	return leads, waits
}

// Members returns how many members the group has, to this member's knowledge.
func (m *Machine) Members() int { return m.members }

// Leaving reports whether Leave was called.
func (m *Machine) Leaving() bool { return m.leaving }

// Leads reports whether the member leads the partition, to its knowledge.
func (m *Machine) Leads(p int) bool { return m.parts[p].phase == leading || m.parts[p].phase == ending }

// LeadsAny reports whether the member leads a partition.
func (m *Machine) LeadsAny() bool {
	return slices.ContainsFunc(m.parts, func(at part) bool { return at.phase == leading || at.phase == ending })
}

// Waits reports whether the member waits for the partition, and shall lead it.
func (m *Machine) Waits(p int) bool {
	return m.parts[p].phase == waiting && m.isBest(p)
}

// isBest reports whether this member shall lead the partition.
func (m *Machine) isBest(p int) bool { return m.self >= 0 && m.places[p].Best == m.self }

// decideAll decides about all partitions: those that the member shall lead come first, so that it leads
// them soon.
func (m *Machine) decideAll() []Action {
	for _, best := range []bool{true, false} {
		for p := range m.parts {
			if m.isBest(p) == best {
				m.decide(p)
			}
		}
	}
	return m.take()
}

// decide begins or ends a campaign, if the place of the partition asks for that.
func (m *Machine) decide(p int) {
	switch at := &m.parts[p]; {
	case at.phase == idle && m.wanted(p):
		at.phase = waiting
		m.busy++
		m.emit(Campaign, p)
	case at.phase == waiting && !m.wanted(p):
		m.release(p, Withdraw, false)
	case at.phase == leading && (m.leaving || m.shallResign(p)):
		at.phase = ending
		m.emit(End, p)
	}
}

// wanted reports whether the member campaigns for the partition.
func (m *Machine) wanted(p int) bool {
	return !m.leaving && (m.isBest(p) || m.self >= 0 && m.places[p].Second == m.self)
}

// shallResign reports whether the best member waits for the partition, and notes that this one resigns
// for it.
func (m *Machine) shallResign(p int) bool {
	best := m.places[p].Best
	if best < 0 || best == m.self {
		return false
	}
	other := m.sharing[best]
	if !other.Waits.Has(p) || other.Published == m.parts[p].gaveTo {
		return false
	}
	m.parts[p].gaveTo = other.Published
	return true
}

func (m *Machine) release(p int, by ActionKind, again bool) {
	m.parts[p].phase, m.parts[p].again = releasing, again
	m.emit(by, p)
}

// end ends a campaign. The next one begins at once, or after a pause.
func (m *Machine) end(p int, pause bool) {
	at := &m.parts[p]
	at.phase, at.again, m.changed = idle, false, true
	m.busy--
	switch {
	case m.leaving:
	case pause:
		at.phase = paused
		m.out = append(m.out, Action{Pause, p, int(at.failed)})
		at.failed = min(at.failed+1, 100)
	default:
		m.decide(p)
	}
}

func (m *Machine) emit(kind ActionKind, p int) {
	m.changed = true
	m.out = append(m.out, Action{Kind: kind, Partition: p})
}

// take returns the actions of an event.
func (m *Machine) take() []Action {
	if m.leaving && m.busy == 0 {
		m.emit(Left, -1)
		m.busy = -1 // so that it comes once
	}
	out := m.out
	m.out = nil
	return out
}

// Check returns what is wrong with the state of the machine, or nil.
func (m *Machine) Check() error {
	busy := 0
	for p := range m.parts {
		switch at := &m.parts[p]; {
		case at.phase != idle && at.phase != paused:
			busy++
		case m.leaving:
		case at.phase == idle && m.wanted(p):
			return fmt.Errorf("partition %d: the member shall campaign, and does not", p)
		}
	}
	if m.busy >= 0 && busy != m.busy {
		return fmt.Errorf("%d partitions are busy, and %d are counted", busy, m.busy)
	}
	return nil
}
