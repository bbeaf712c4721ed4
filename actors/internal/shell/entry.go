package shell

import (
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
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
	// Deps are the entries of Recipe.Deps. They do not retire before this one.
	Deps []*Entry

	tally     *tally       // of this actor and some others
	users     atomic.Int32 // entries that build upon this one, and callers that keep its PID; above 0 it does not retire
	forgotten bool         // the manager does not know it any more; guarded by Manager.mu

	tickPending atomic.Bool   // a tick is in the mailbox
	used        bool          // since the last tick
	idleFor     time.Duration // how long the actor has been without use
	stopping    bool          // the actor takes no further message
	suspended   bool          // the connection is lost, and the session may live
}

func (e *Entry) releaseDeps() {
	for _, dep := range e.Deps {
		dep.users.Add(-1)
	}
}

// retireIfIdle is called at each tick. It stops an actor that has been idle for long, and
// reports whether it did.
func (e *Entry) retireIfIdle(idle bool) bool {
	e.tickPending.Store(false)
	e.idleFor += e.Manager.tickInterval
	if e.used || !idle {
		e.used, e.idleFor = !idle, 0 // a request that is open now is use after this tick, too
	}
	if e.idleFor >= e.Manager.IdleTimeout && e.Manager.retire(e) {
		e.stopping = true
		e.Self.Stop()
		return true
	}
	return false
}
