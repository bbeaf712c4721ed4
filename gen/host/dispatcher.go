package host

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// throughput is how many messages a mailbox handles before it lets others run.
const throughput = 300

// dispatcher serves mailboxes with a fixed set of goroutines. protoactor's own
// starts one for each wake-up of a mailbox, which costs three times as much.
type dispatcher struct {
	work   chan *Ref
	quit   chan struct{}
	closed atomic.Bool // quit is closed; this is quicker to ask
	wg     sync.WaitGroup
}

func newDispatcher() *dispatcher {
	d := &dispatcher{work: make(chan *Ref, 1024), quit: make(chan struct{})}
	for range max(4, 2*runtime.GOMAXPROCS(0)) {
		d.wg.Go(d.serve)
	}
	return d
}

// schedule has r served soon. It never waits for a free server: it is called by the
// servers themselves.
func (d *dispatcher) schedule(r *Ref) {
	if d.closed.Load() {
		go r.serve()
		return
	}
	select {
	case d.work <- r:
		d.check()
	default:
		go r.serve()
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
			r.serve()
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
			r.serve()
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
