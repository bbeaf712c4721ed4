package shell

import (
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// OpenRequest is an open request at one moment.
type OpenRequest struct {
	Entry *Entry
	Kind  queue.Kind
	// Owner is the name of the owner, or "".
	Owner string
	// Actor is the address of the actor that has sent the request; "" for Go code.
	Actor string
	State RequestState
	// Granted is the grant, or nil if the request waits. Nothing may write to it.
	Granted *messages.Granted
	// Since is when the request came, or, if it was granted, when it was granted.
	Since time.Time
	// FromLockActor reports that another lock's actor asks on behalf of owners.
	FromLockActor bool
}

// RequestState is how far an open request has come.
type RequestState uint8

// The states of an open request.
const (
	Waiting RequestState = iota
	Held
	// Releasing: the owner has released the grant, and ZooKeeper has not confirmed it.
	Releasing
	// Lost: the grant is lost, and its named owner has not released it.
	Lost
)

// openQuery asks an actor for its open requests.
type openQuery struct{ reply chan<- []OpenRequest }

// Open returns the open requests of all locks. It blocks until each actor has come to the question,
// behind the messages that it has already.
func (m *Manager) Open() []OpenRequest {
	m.mu.Lock()
	entries := slices.Clone(m.activeEntries())
	m.mu.Unlock()
	return openOf(entries...)
}

// OpenAt is Open for the lock at one path.
func (m *Manager) OpenAt(path string) []OpenRequest {
	m.mu.Lock()
	e := m.entries[path]
	m.mu.Unlock()
	if e == nil {
		return nil
	}
	return openOf(e)
}

// openOf asks the actors, the idle ones in the calling goroutine: thousands of locks need no more
// than that.
func openOf(entries ...*Entry) (all []OpenRequest) {
	replies := make(chan []OpenRequest, len(entries))
	for _, e := range entries {
		e.Self.RunInlineIfIdle(openQuery{replies})
	}
	for range entries {
		all = append(all, <-replies...)
	}
	return all
}

// answer answers the question for the open requests.
func (q openQuery) answer(s *Shell) {
	var all []OpenRequest
	for _, r := range s.Requests() {
		all = append(all, OpenRequest{Entry: s.Entry, Kind: r.Kind, Owner: r.OwnerName(), Actor: r.actor(), State: r.state(), Granted: r.Granted,
			Since: s.Manager.Bridge.TimeOf(r.since), FromLockActor: r.FromLockActor})
	}
	q.reply <- all
}

func (r *Request) state() RequestState {
	switch {
	case r.lost != 0:
		return Lost
	case r.Released:
		return Releasing
	case r.Granted != nil:
		return Held
	}
	return Waiting
}

// OwnerName returns the name of the owner, or "".
func (r *Request) OwnerName() string {
	if a := r.Acquisition(); a != nil {
		return a.Owner()
	}
	return r.key.owner
}

// actor returns the address of the actor that has sent the request, or "".
func (r *Request) actor() string {
	if r.FromLockActor {
		return ""
	}
	if who, is := host.IdentityOf(r.owner); is {
		return who.String()
	}
	return ""
}
