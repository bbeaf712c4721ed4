package manager

import (
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
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
	// From is where the answers go.
	From ask.Recipient
	// Nodes are the names of the nodes with which a request waits, perhaps without the sequence
	// number. A request that waits in a local queue has none: the node is of all its owners.
	Nodes []string
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
	actors := actorsOf(m.activeEntries())
	m.mu.Unlock()
	return openOf(actors)
}

func actorsOf(entries []*Entry) (all []*host.Ref) {
	for _, e := range entries {
		all = append(all, e.Self)
	}
	return all
}

// OpenAt is Open for the lock at one path.
func (m *Manager) OpenAt(path string) []OpenRequest {
	m.mu.Lock()
	entries := slices.Concat(slices.Collect(maps.Values(m.served[path]))...)
	if e := m.entries[path]; e != nil {
		entries = append(entries, e)
	}
	m.mu.Unlock()
	return openOf(actorsOf(entries))
}

// OpenAbove is OpenAt, with the open requests of all multi-locks that ask for the lock.
func (m *Manager) OpenAbove(path string) []OpenRequest {
	all, multiLocks := m.OpenAt(path), map[*host.Ref]bool{}
	for _, r := range all {
		if ref, is := r.From.(*host.Ref); is && r.FromLockActor {
			multiLocks[ref] = true
		}
	}
	return append(all, openOf(slices.Collect(maps.Keys(multiLocks)))...)
}

// openOf asks the actors, the idle ones in the calling goroutine: thousands of locks need no more
// than that.
func openOf(actors []*host.Ref) (all []OpenRequest) {
	replies := make(chan []OpenRequest, len(actors))
	for _, a := range actors {
		a.RunInlineIfIdle(OpenQuery{replies})
	}
	for range actors {
		all = append(all, <-replies...)
	}
	return all
}
