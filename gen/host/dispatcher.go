package host

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// throughput is the number of messages of one mailbox that a goroutine handles in one turn,
// before it puts the mailbox at the end of the run queue. With 64 in place of 256, other
// mailboxes were measured to wait just as long.
const throughput = 256

// dispatcher serves mailboxes in the order of its run queue with a fixed number of
// goroutines, each mailbox for one turn at a time. protoactor's own dispatcher starts a
// goroutine for each wake-up of a mailbox, which costs three times as much.
type dispatcher struct {
	runQueue chan *Ref // each of them is scheduled: see mailbox.scheduled
	quit     chan struct{}
	closed   atomic.Bool // set just before quit is closed; quicker to read
	wg       sync.WaitGroup
}

func newDispatcher(servers int) *dispatcher {
	d := &dispatcher{runQueue: make(chan *Ref, 1024), quit: make(chan struct{})}
	for range servers {
		d.wg.Go(d.serve)
	}
	return d
}

// schedule puts r at the end of the run queue. It never blocks, because the goroutines that
// serve the queue call it: it starts a goroutine for r if the run queue is full.
func (d *dispatcher) schedule(r *Ref) {
	if d.closed.Load() {
		go d.run(r)
		return
	}
	select {
	case d.runQueue <- r:
		d.drainIfClosed()
	default:
		go d.run(r)
	}
}

// run serves r. At the end of each turn it puts r at the end of the run queue, and goes on
// with the first mailbox of the queue. It returns when its present mailbox is empty.
func (d *dispatcher) run(r *Ref) {
	for r.serve() {
		select {
		case first := <-d.runQueue:
			d.schedule(r)
			r = first
		default: // the run queue is empty: go on with r
		}
		runtime.Gosched() // let the goroutines run that the messages have woken
	}
}

// drainIfClosed serves the run queue if the dispatcher was closed meanwhile, because its
// goroutines may have ended before they saw the last entry. It uses a goroutine of its own,
// because the caller may hold a lock that the actor needs.
func (d *dispatcher) drainIfClosed() {
	if d.closed.Load() {
		go d.drain()
	}
}

func (d *dispatcher) serve() {
	for {
		select {
		case r := <-d.runQueue:
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
		case r := <-d.runQueue:
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
