package manager

import (
	"slices"
	"time"
)

// maxTicksAtOnce is how many entries get a tick at once: a tick of all at once would wake up too
// many actors.
const maxTicksAtOnce = 512

// AtNextTick has f called at the next tick of the actors. It serves the goroutine of the garbage
// collector, which must neither run an actor nor log: it is outside of the bubble of a test with
// virtual time, and has another clock and other channels. Without an actor no request is open,
// there is no tick, and f is forgotten: in a process that uses no lock for a while it would keep in
// memory what it knows.
func (m *Manager) AtNextTick(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ticks != nil {
		m.atNextTick = append(m.atNextTick, f)
	}
}

// tickEntries sends a tick to the entries: to some at a time, with a pause between them. A timer
// for each entry would take more memory than most of the rest.
func (m *Manager) tickEntries() {
	m.mu.Lock()
	due := m.atNextTick
	m.atNextTick = nil
	m.mu.Unlock()
	for _, f := range due {
		f()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if len(m.tickDue) == 0 {
		m.tickDue = slices.Clone(m.activeEntries())
	}
	n := min(len(m.tickDue), maxTicksAtOnce)
	for _, e := range m.tickDue[:n] {
		if !e.tickPending.Swap(true) {
			e.Self.Tell(Tick{})
		}
	}
	clear(m.tickDue[:n])
	m.tickDue = m.tickDue[n:]
	switch {
	case len(m.tickDue) > 0:
		m.ticks.Reset(time.Millisecond)
	case len(m.entries)+len(m.served) > 0:
		m.tickDue = nil
		m.ticks.Reset(m.tickInterval)
	default:
		m.tickDue, m.inOrder, m.ticks, m.atNextTick = nil, nil, nil, nil
	}
}
