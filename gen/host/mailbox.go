package host

import "sync"

// mailbox is the unbounded queue of an actor's messages. Unlike protoactor's, it accepts
// messages before its actor is made and after its actor has stopped, and needs no allocation
// to be scheduled.
//
// A caller that has scheduled the mailbox, by a method that returned true, must have it served
// until next reports that it is empty.
type mailbox struct {
	mu        sync.Mutex
	user      fifo
	ahead     fifo  // messages of TellAhead, which overtake those of user
	system    []any // protoactor's own messages, which overtake all others
	started   bool  // the actor is made
	ended     bool  // the actor has stopped; implies started
	scheduled bool  // a goroutine serves the mailbox, or the run queue has it; implies started
}

// put enqueues msg, and reports whether it has scheduled the mailbox.
func (m *mailbox) put(msg any, system bool) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if system {
		m.system = append(m.system, msg)
	} else {
		m.user.push(msg)
	}
	return m.trySchedule()
}

// putAhead is put for a message of TellAhead.
func (m *mailbox) putAhead(msg any) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead.push(msg)
	return m.trySchedule()
}

// tryEnter schedules an idle mailbox, which is empty, and returns true: the caller then
// handles msg and serves the mailbox. Otherwise it enqueues msg and returns false.
func (m *mailbox) tryEnter(msg any) (idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trySchedule() {
		return true
	}
	m.user.push(msg)
	return false
}

// start allows the mailbox to be served, and reports whether it has scheduled it.
func (m *mailbox) start() (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = true
	return m.hasMessages() && m.trySchedule()
}

// isEmpty reports whether there is no message at the moment.
func (m *mailbox) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.hasMessages()
}

// hasMessages reports whether there is a message. The caller holds m.mu.
func (m *mailbox) hasMessages() bool { return len(m.system)+m.ahead.len()+m.user.len() > 0 }

// trySchedule reports whether it has scheduled the mailbox. The caller holds m.mu.
func (m *mailbox) trySchedule() bool {
	if !m.started || m.scheduled {
		return false
	}
	m.scheduled = true
	return true
}

// next removes and returns the next message of a scheduled mailbox, and whether it is one of
// protoactor's own. If there is none, ok is false and the mailbox is not scheduled any more.
func (m *mailbox) next() (msg any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.system) > 0:
		msg, m.system = m.system[0], m.system[1:]
		return msg, true, true
	case m.ahead.len() > 0:
		return m.ahead.pop(), false, true
	case m.user.len() > 0:
		return m.user.pop(), false, true
	}
	m.scheduled = false
	return nil, false, false
}

// yield ends the turn of the caller, which serves the mailbox. It reports whether there are
// messages: then the mailbox stays scheduled, and the caller must have it served.
func (m *mailbox) yield() (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scheduled = m.hasMessages()
	return m.scheduled
}

// fifo is a queue that re-uses its memory, and frees most of it after a burst.
type fifo struct {
	items     []any // those before head are nil
	head      int   // index of the first message
	recentMax int   // longest length of late: it shrinks by an eighth each time the queue is empty
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(item any) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
	f.recentMax = max(f.recentMax, f.len())
}

func (f *fifo) pop() any {
	item := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > maxIdleCap && f.recentMax < cap(f.items)/4 {
			f.items = nil
		}
		f.recentMax -= f.recentMax / 8
	}
	return item
}

// maxIdleCap is the greatest capacity that an empty queue keeps regardless of recentMax.
const maxIdleCap = 64
