package shell

import (
	"slices"
	"time"
)

// maxTicksAtOnce is how many entries get a tick at once: a tick of all at once would wake up too
// many actors.
const maxTicksAtOnce = 512

// tickEntries sends a tick to the entries: to some at a time, with a pause between them. A timer
// for each entry would take more memory than most of the rest.
func (m *Manager) tickEntries() {
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
			e.Self.Tell(tick{})
		}
	}
	clear(m.tickDue[:n])
	m.tickDue = m.tickDue[n:]
	switch {
	case len(m.tickDue) > 0:
		m.ticks.Reset(time.Millisecond)
	case len(m.entries) > 0:
		m.tickDue = nil
		m.ticks.Reset(m.tickInterval)
	default:
		m.tickDue, m.inOrder, m.ticks = nil, nil, nil
	}
}
