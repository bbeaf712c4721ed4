package host

import (
	"sync"

	"github.com/actorlock/actorlock/gen/ask"
)

// mailbox is the unbounded queue of an actor's messages. Unlike protoactor's, it accepts
// messages before its actor is made and after its actor has stopped, and needs no allocation
// to be scheduled.
//
// A caller that has scheduled the mailbox, by a method that returned true, must have it served
// until next reports that it is empty.
type mailbox struct {
	mu        sync.Mutex
	user      fifo
	ahead     *fifo // messages of TellAhead, which overtake those of user; nil before the first
	system    []any // protoactor's own messages, which overtake all others
	started   bool  // the actor is made
	ended     bool  // the actor has stopped; implies started
	scheduled bool  // a goroutine serves the mailbox, or the run queue has it; implies started
}

// item is a message in a mailbox.
type item struct {
	msg  any
	from ask.Recipient // of TellFrom; otherwise nil
}

// put enqueues a message, and reports whether it has scheduled the mailbox.
func (m *mailbox) put(msg any, from ask.Recipient) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.user.push(item{msg, from})
	return m.trySchedule()
}

// putSystem is put for one of protoactor's own messages.
func (m *mailbox) putSystem(msg any) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.system = append(m.system, msg)
	return m.trySchedule()
}

// putAhead is put for a message of TellAhead.
func (m *mailbox) putAhead(msg any) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ahead == nil {
		m.ahead = &fifo{}
	}
	m.ahead.push(item{msg: msg})
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
	m.user.push(item{msg: msg})
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
func (m *mailbox) next() (next item, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.system) > 0:
		next.msg, m.system = m.system[0], m.system[1:]
		return next, true, true
	case m.ahead.len() > 0:
		return m.ahead.pop(), false, true
	case m.user.len() > 0:
		return m.user.pop(), false, true
	}
	m.scheduled = false
	return item{}, false, false
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
	items     []item // those before head are empty
	head      int    // index of the first message
	recentMax int    // longest length of late: it shrinks by an eighth each time the queue is empty
}

// len returns the number of messages. A nil queue has none.
func (f *fifo) len() int {
	if f == nil {
		return 0
	}
	return len(f.items) - f.head
}

func (f *fifo) push(added item) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, added)
	f.recentMax = max(f.recentMax, f.len())
}

func (f *fifo) pop() item {
	first := f.items[f.head]
	f.items[f.head] = item{}
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > maxIdleCap && f.recentMax < cap(f.items)/4 {
			f.items = nil
		}
		f.recentMax -= f.recentMax / 8
	}
	return first
}

// maxIdleCap is the greatest capacity that an empty queue keeps regardless of recentMax.
const maxIdleCap = 64
