package manager

import (
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
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
		e.Self.RunInlineIfIdle(OpenQuery{replies})
	}
	for range entries {
		all = append(all, <-replies...)
	}
	return all
}
