package manager

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Entry is an actor that the manager keeps. An actor without use stops, so that it costs
// nothing: the manager forgets it, and a later request to it is answered STOPPED, after which
// its sender asks the manager again.
type Entry struct {
	Manager *Manager
	// Self is the mailbox of the actor.
	Self   *host.Ref
	Path   string
	Recipe *Recipe
	// Directories are the paths of Recipe.Directories.
	Directories []string
	// Deps are the entries of Recipe.Members. They do not retire before this one.
	Deps []*Entry
	// Tally counts for this actor and some others.
	Tally *Tally
	// SessionAtStart is the state of the session when the actor was started, or nil if there was
	// none yet. Each later change comes as a StateChange.
	SessionAtStart *messages.SessionChanged

	number uint64 // of the actors that the manager has started
	// users counts the entries that build upon this one, and the callers that keep its PID. Above 0
	// it does not retire.
	users       atomic.Int32
	tickPending atomic.Bool // a Tick is in the mailbox
	quietTicks  uint32      // in a row; touched by RetireIfQuiet only
	served      bool        // it is of FindServed
	forgotten   bool        // the manager does not know it any more; guarded by Manager.mu
}

// Name implements host.Named: it returns the name of the actor.
func (e *Entry) Name() string {
	return e.Manager.name + "/" + strconv.FormatUint(e.number, 10) + e.Path
}

func (e *Entry) releaseDeps() {
	for _, dep := range e.Deps {
		dep.users.Add(-1)
	}
}

// Messages of the manager to the actors.
type (
	// Tick comes every second or more often. The actor answers it with RetireIfQuiet.
	Tick struct{}
	// StateChange is the state of the session. It comes at each change.
	StateChange struct{ *messages.SessionChanged }
	// RefuseWaiting is sent to all actors when their locks are drained. An actor sends it to itself
	// again when one of its grants ends later: the owner may wait for another one.
	RefuseWaiting struct{}
	// OpenQuery asks an actor for its open requests, also behind its end.
	OpenQuery struct{ Reply chan<- []OpenRequest }
	// NodesQuery asks an actor that cleans up for the paths of its nodes.
	NodesQuery struct{ Reply chan<- []string }
)

// RetireIfQuiet is called by the actor of e at each Tick. It stops an actor that has been quiet for
// IdleTimeout, and reports whether it did. Quiet is an actor that needs nothing, and was not used
// since the last Tick.
func (m *Manager) RetireIfQuiet(e *Entry, quiet bool) bool {
	e.tickPending.Store(false)
	if !quiet {
		e.quietTicks = 0
		return false
	}
	e.quietTicks++
	if time.Duration(e.quietTicks)*m.tickInterval < m.IdleTimeout {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users.Load() > 0 {
		return false
	}
	m.forgetLocked(e)
	e.Self.Stop()
	return true
}
