package host

import "sync"

// mailbox is unbounded. Unlike protoactor's own it takes messages from the moment it is
// made and after the end of its actor, and allocates nothing to be scheduled. Who is told
// to schedule it has it served, until next says that it is empty.
type mailbox struct {
	mu        sync.Mutex
	user      fifo
	system    []any // protoactor's own messages; they overtake others
	opened    bool  // its actor is made
	ended     bool  // and has stopped
	scheduled bool  // it is being served, or about to be
}

// put takes a message in, and tells if the mailbox is to be scheduled.
func (m *mailbox) put(msg any, system bool) (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if system {
		m.system = append(m.system, msg)
	} else {
		m.user.push(msg)
	}
	return m.schedule()
}

// tryEnter is put for who may as well handle the message: if the mailbox is idle, and so is
// empty, it is the caller's to serve, who begins with the message. It tells if that is so;
// otherwise the message is in the mailbox, which somebody serves or will.
func (m *mailbox) tryEnter(msg any) (idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.schedule() {
		return true
	}
	m.user.push(msg)
	return false
}

// open lets the mailbox be served, and tells if it is to be scheduled.
func (m *mailbox) open() (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = true
	return m.filled() && m.schedule()
}

// isEmpty tells that there is no message at the moment.
func (m *mailbox) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.filled()
}

// filled needs m.mu.
func (m *mailbox) filled() bool { return len(m.system)+m.user.len() > 0 }

// schedule needs m.mu.
func (m *mailbox) schedule() bool {
	if !m.opened || m.scheduled {
		return false
	}
	m.scheduled = true
	return true
}

// next is the message to handle now. If there is none, the mailbox is not scheduled
// any more.
func (m *mailbox) next() (msg any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.system) > 0:
		msg, m.system = m.system[0], m.system[1:]
		return msg, true, true
	case m.user.len() > 0:
		return m.user.pop(), false, true
	}
	m.scheduled = false
	return nil, false, false
}

// rest is for who handles no more messages: it tells if there are any, for which the
// mailbox is to be scheduled.
func (m *mailbox) rest() (schedule bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scheduled = m.filled()
	return m.scheduled
}

// fifo is a queue that uses its memory again, and gives much of it back.
type fifo struct {
	items []any
	head  int
	most  int // how long it mostly is before it is empty again
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(item any) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
	f.most = max(f.most, f.len())
}

func (f *fifo) pop() any {
	item := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > maxIdle && f.most < cap(f.items)/4 {
			f.items = nil
		}
		f.most -= f.most / 8
	}
	return item
}

// maxIdle is how many places an empty queue keeps that needs fewer.
const maxIdle = 64
