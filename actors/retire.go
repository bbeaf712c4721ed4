package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
)

// resident is an actor in the manager's care. When nobody wants anything of it, it
// stops, so that it costs nothing: the manager forgets it, and whoever still sends it
// a request is answered STOPPED and asks the manager again.
type resident struct {
	manager *manager
	self    *host.Ref
	key     string // in manager.residents
	path    string
	recipe  *recipe
	upon    []*resident  // as recipe.upon; they do not retire before this one
	users   atomic.Int32 // who know its address, or build upon it: it does not retire

	forgotten bool // by the manager

	ticked  atomic.Bool   // a tick is in its mailbox
	used    bool          // since the last tick
	quiet   time.Duration // how long nobody has wanted anything
	retired bool
	failed  bool
}

// leave lets go of what it builds upon.
func (r *resident) leave() {
	for _, upon := range r.upon {
		upon.users.Add(-1)
	}
}

// tick is what a resident is told when a moment has passed.
type tick struct{}

// maxBeat is how many residents are told at once. All at once would wake up too many.
const maxBeat = 512

// beat tells the residents that a moment has passed: some at a time, with a pause
// between them. One timer for each would take more memory than most of the rest.
func (m *manager) beat() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if len(m.due) == 0 {
		m.due = slices.Clone(m.present())
	}
	n := min(len(m.due), maxBeat)
	for _, r := range m.due[:n] {
		if !r.ticked.Swap(true) {
			r.self.Tell(tick{})
		}
	}
	clear(m.due[:n])
	m.due = m.due[n:]
	switch {
	case len(m.due) > 0:
		m.beats.Reset(time.Millisecond)
	case len(m.residents) > 0:
		m.due = nil
		m.beats.Reset(m.tick)
	default:
		m.due, m.inOrder, m.beats = nil, nil, nil
	}
}

// rest is for each tick. It tells that the actor has been stopped, since it was idle
// for long.
func (r *resident) rest(idle bool) bool {
	r.ticked.Store(false)
	r.quiet += r.manager.tick
	if r.used || !idle {
		r.used, r.quiet = !idle, 0 // what is wanted now is wanted after this tick, too
	}
	if r.quiet >= r.manager.idle && r.manager.retire(r) {
		r.retired = true
		r.self.Stop()
		return true
	}
	return false
}

// fail ends an actor because one that it builds upon has stopped. From now on whoever asks
// finds fresh ones.
func (r *resident) fail() {
	r.manager.replace(r)
	r.retired, r.failed = true, true
	r.self.Stop()
}

// stop is for the end, whichever it is. From now on whoever asks finds another actor. This
// one says that it is done with running when it has answered everybody.
func (r *resident) stop(failure any) {
	r.manager.replace(r)
	r.retired, r.failed = true, r.failed || failure != nil
}
