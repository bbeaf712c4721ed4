package host

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// turn is how many messages of a mailbox are handled before the mailbox goes to the end of
// the run queue. Measured: with turns of 64 other mailboxes wait just as long.
const turn = 256

// dispatcher serves mailboxes in the order of its run queue with a fixed set of goroutines,
// each mailbox for one turn at a time. protoactor's own dispatcher starts a goroutine for
// each wake-up of a mailbox, which costs three times as much.
type dispatcher struct {
	work   chan *Ref // the run queue
	quit   chan struct{}
	closed atomic.Bool // quit is closed; this is quicker to ask
	wg     sync.WaitGroup
}

func newDispatcher(servers int) *dispatcher {
	d := &dispatcher{work: make(chan *Ref, 1024), quit: make(chan struct{})}
	for range servers {
		d.wg.Go(d.serve)
	}
	return d
}

// schedule puts r at the end of the run queue. It never waits for a free server, because
// servers call it. A goroutine of its own serves r if the run queue is full.
func (d *dispatcher) schedule(r *Ref) {
	if d.closed.Load() {
		go d.run(r)
		return
	}
	select {
	case d.work <- r:
		d.check()
	default:
		go d.run(r)
	}
}

// run serves r. At the end of each turn run passes to the first mailbox of the run queue,
// and r goes to the end of the queue. run returns when the mailbox in its hands is empty.
func (d *dispatcher) run(r *Ref) {
	for r.serve() {
		select {
		case first := <-d.work:
			d.schedule(r)
			r = first
		default: // r is the only one
		}
		runtime.Gosched() // the goroutines that the messages have woken are to run, too
	}
}

// check is for what was put into work while the dispatcher was closed: its servers may have
// gone before they saw it. The caller does not serve it, as it may hold a lock that the
// actor takes.
func (d *dispatcher) check() {
	if d.closed.Load() {
		go d.drain()
	}
}

func (d *dispatcher) serve() {
	for {
		select {
		case r := <-d.work:
			d.run(r)
		case <-d.quit:
			d.drain()
			return
		}
	}
}

func (d *dispatcher) drain() {
	for {
		select {
		case r := <-d.work:
			d.run(r)
		default:
			return
		}
	}
}

func (d *dispatcher) close() {
	d.closed.Store(true)
	close(d.quit)
	d.wg.Wait()
}
