package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
)

// actorEntry is an actor in the manager's care. When nobody wants anything of it, it
// stops, so that it costs nothing: the manager forgets it, and whoever still sends it
// a request is answered STOPPED and asks the manager again.
type actorEntry struct {
	manager *manager
	self    *host.Ref
	key     string // in manager.residents
	path    string
	recipe  *recipe
	deps    []*actorEntry // as recipe.upon; they do not retire before this one
	users   atomic.Int32  // who know its address, or build upon it: it does not retire

	forgotten bool // by the manager

	tickPending atomic.Bool   // a tick is in its mailbox
	used        bool          // since the last tick
	idleFor     time.Duration // how long nobody has wanted anything
	retired     bool
	failed      bool
}

// releaseDeps lets go of what it builds upon.
func (r *actorEntry) releaseDeps() {
	for _, upon := range r.deps {
		upon.users.Add(-1)
	}
}

// tick is what a resident is told when a moment has passed.
type tick struct{}

// maxTicksAtOnce is how many residents are told at once. All at once would wake up too many.
const maxTicksAtOnce = 512

// tickEntries tells the residents that a moment has passed: some at a time, with a pause
// between them. One timer for each would take more memory than most of the rest.
func (m *manager) tickEntries() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if len(m.tickDue) == 0 {
		m.tickDue = slices.Clone(m.activeEntries())
	}
	n := min(len(m.tickDue), maxTicksAtOnce)
	for _, r := range m.tickDue[:n] {
		if !r.tickPending.Swap(true) {
			r.self.Tell(tick{})
		}
	}
	clear(m.tickDue[:n])
	m.tickDue = m.tickDue[n:]
	switch {
	case len(m.tickDue) > 0:
		m.tickTimer.Reset(time.Millisecond)
	case len(m.entries) > 0:
		m.tickDue = nil
		m.tickTimer.Reset(m.tickInterval)
	default:
		m.tickDue, m.inOrder, m.tickTimer = nil, nil, nil
	}
}

// onTick is for each tick. It tells that the actor has been stopped, since it was idle
// for long.
func (r *actorEntry) onTick(idle bool) bool {
	r.tickPending.Store(false)
	r.idleFor += r.manager.tickInterval
	if r.used || !idle {
		r.used, r.idleFor = !idle, 0 // what is wanted now is wanted after this tick, too
	}
	if r.idleFor >= r.manager.idleTimeout && r.manager.retire(r) {
		r.retired = true
		r.self.Stop()
		return true
	}
	return false
}

// stopFailed ends an actor because one that it builds upon has stopped. From now on whoever asks
// finds fresh ones.
func (r *actorEntry) stopFailed() {
	r.manager.remove(r)
	r.retired, r.failed = true, true
	r.self.Stop()
}

// markStopped is for the end, whichever it is. From now on whoever asks finds another actor. This
// one says that it is done with running when it has answered everybody.
func (r *actorEntry) markStopped(failure any) {
	r.manager.remove(r)
	r.retired, r.failed = true, r.failed || failure != nil
}
