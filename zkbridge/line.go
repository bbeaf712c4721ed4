package zkbridge

import "sync/atomic"

// line has the transactions of a link sent in the order in which they took their
// places, while several are under way. go-zookeeper keeps no order among the
// goroutines that call it, nor does it tell when it has sent something: the wire does.
// All methods may be called from any goroutine.
type line struct {
	last    atomic.Pointer[place]
	sending atomic.Pointer[place] // whose transaction is the next that will be sent
}

// place is that of one transaction.
type place struct {
	line  *line
	ahead *place        // nil for the first
	sent  chan struct{} // closed when the transaction has been sent, or never will be
}

// join takes the last place. Who has it must come to wait and leave.
func (l *line) join() *place {
	p := &place{line: l, sent: make(chan struct{})}
	p.ahead = l.last.Swap(p)
	return p
}

// advance notes that a transaction is being sent.
func (l *line) advance() { l.pass(l.sending.Load()) }

func (l *line) pass(p *place) {
	if p != nil && l.sending.CompareAndSwap(p, nil) {
		close(p.sent)
	}
}

// wait blocks until the transaction may be sent.
func (p *place) wait() {
	if p.ahead != nil {
		<-p.ahead.sent
		p.ahead = nil // it is not needed any more
	}
	p.line.sending.Store(p)
}

// leave is for a transaction that is over, sent or not.
func (p *place) leave() { p.line.pass(p) }
