package failures

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// TestHistoryOfReadersAndWriters is TestHistory with clients that read, write, or downgrade.
func TestHistoryOfReadersAndWriters(t *testing.T) { testHistory(t, readWriteClients()) }

// TestHistoryOfLocalReadersAndWriters is the same with local queues.
func TestHistoryOfLocalReadersAndWriters(t *testing.T) {
	testHistory(t, readWriteClients(fewGrants))
}

func readWriteClients(options ...actors.LockOption) clients {
	return func(h *history, b *locktest.Fixture, locks *actors.Locks, r *resource) func(int) {
		rw := locks.RWMutex(b.LockPath, options...)
		return func(client int) { h.readOrWrite(b, client, rw, r) }
	}
}

// readOrWrite acquires one of the locks, and releases it.
func (h *history) readOrWrite(b *locktest.Fixture, client int, rw *actors.RWMutex, r *resource) {
	owner := actors.WithOwner(actors.Owner(fmt.Sprint(client)))
	if rand.N(3) > 0 {
		h.read(b, client, h.lock(b, client, rw.Read(), operation{shared: true}, owner))
		return
	}
	w := h.lock(b, client, rw.Write(), operation{}, owner)
	if w == nil {
		return
	}
	h.writeSome(client, w, r)
	var reader *actors.Grant
	if rand.N(3) == 0 {
		reader = h.lock(b, client, rw.Read(), operation{shared: true, again: true}, owner)
	}
	h.unlock(b, client, w, operation{})
	h.read(b, client, reader)
}

func (h *history) read(b *locktest.Fixture, client int, g *actors.Grant) {
	if g == nil {
		return
	}
	if rand.N(6) == 0 {
		h.holdLonger(g)
	}
	h.unlock(b, client, g, operation{shared: true})
}
