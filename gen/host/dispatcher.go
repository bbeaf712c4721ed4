package host

import (
	"runtime"
	"sync"
)

// throughput is how many messages a mailbox handles before it lets others run.
const throughput = 300

// dispatcher serves mailboxes with a fixed set of goroutines. protoactor's own
// starts one for each wake-up of a mailbox, which costs three times as much.
type dispatcher struct {
	work chan func()
	quit chan struct{}
	wg   sync.WaitGroup
}

func newDispatcher() *dispatcher {
	d := &dispatcher{work: make(chan func(), 1024), quit: make(chan struct{})}
	for range max(4, 2*runtime.GOMAXPROCS(0)) {
		d.wg.Go(d.serve)
	}
	return d
}

// Schedule runs fn soon. It never waits for a free server: it is called by the
// servers themselves.
func (d *dispatcher) Schedule(fn func()) {
	select {
	case <-d.quit:
		go fn()
		return
	default:
	}
	select {
	case d.work <- fn:
		select {
		case <-d.quit:
			d.drain() // the servers may have gone before they saw it
		default:
		}
	default:
		go fn()
	}
}

// Throughput implements actor.Dispatcher.
func (d *dispatcher) Throughput() int { return throughput }

func (d *dispatcher) serve() {
	for {
		select {
		case fn := <-d.work:
			fn()
		case <-d.quit:
			d.drain()
			return
		}
	}
}

func (d *dispatcher) drain() {
	for {
		select {
		case fn := <-d.work:
			fn()
		default:
			return
		}
	}
}

func (d *dispatcher) close() {
	close(d.quit)
	d.wg.Wait()
}
