package host

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is an unbounded actor.Mailbox. Unlike protoactor's own it takes messages
// from the moment it is made, hands those to a stopped actor's Refuse instead of
// dropping them, and allocates nothing to be scheduled.
type mailbox struct {
	hosted *hosted
	run    func() // serve, allocated once

	mu         sync.Mutex
	user       fifo
	system     fifo
	suspended  bool
	scheduled  bool // a dispatcher has run, or is to run it
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher // nil while the actor is being made
}

func newMailbox(h *hosted) *mailbox {
	m := &mailbox{hosted: h}
	m.run = m.serve
	return m
}

// PostUserMessage implements actor.Mailbox.
func (m *mailbox) PostUserMessage(msg any) { m.post(&m.user, msg) }

// PostSystemMessage implements actor.Mailbox. System messages overtake others.
func (m *mailbox) PostSystemMessage(msg any) { m.post(&m.system, msg) }

func (m *mailbox) post(to *fifo, msg any) {
	m.mu.Lock()
	to.push(msg)
	m.scheduleLocked()
}

// scheduleLocked has the mailbox served unless it is already. It unlocks m.mu.
func (m *mailbox) scheduleLocked() {
	d := m.dispatcher
	if d == nil || m.scheduled {
		m.mu.Unlock()
		return
	}
	m.scheduled = true
	m.mu.Unlock()
	d.Schedule(m.run)
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, d actor.Dispatcher) {
	m.mu.Lock()
	m.invoker, m.dispatcher = invoker, d
	if m.user.len() == 0 {
		m.mu.Unlock()
		return
	}
	m.scheduleLocked()
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.len()
}

func (m *mailbox) serve() {
	for i := 1; ; i++ {
		msg, system, ok := m.next()
		if !ok {
			return
		}
		m.invoke(msg, system)
		if i%throughput == 0 {
			runtime.Gosched()
		}
	}
}

// next is the message to handle now. If there is none, the mailbox is not scheduled
// any more.
func (m *mailbox) next() (msg any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.system.len() > 0:
		return m.system.pop(), true, true
	case m.user.len() > 0 && !m.suspended:
		return m.user.pop(), false, true
	}
	m.scheduled = false
	return nil, false, false
}

func (m *mailbox) invoke(msg any, system bool) {
	defer func() {
		if failure := recover(); failure != nil {
			m.invoker.EscalateFailure(failure, msg)
		}
	}()
	switch {
	case system:
		m.invokeSystem(msg)
	case m.hosted.stopped:
		m.hosted.refuse(msg)
	default:
		m.invoker.InvokeUserMessage(msg)
	}
}

func (m *mailbox) invokeSystem(msg any) {
	switch msg.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		m.invoker.InvokeSystemMessage(msg)
	}
}

func (m *mailbox) suspend(suspended bool) {
	m.mu.Lock()
	m.suspended = suspended
	m.mu.Unlock()
}

// fifo is a queue that uses its memory again, and gives much of it back.
type fifo struct {
	items []any
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(item any) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
}

func (f *fifo) pop() any {
	item := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > maxIdle {
			f.items = nil
		}
	}
	return item
}

// maxIdle is how many places an empty queue keeps.
const maxIdle = 64
