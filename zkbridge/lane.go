package zkbridge

import (
	"fmt"

	"golang.org/x/sync/errgroup"
)

// job is a piece of work that takes its time, but does not block. It calls end when it is
// done, on any goroutine; then runs in the bridge.
type job func(end func(then func()))

// lane runs jobs for an epoch, so many at a time, while its session is connected.
// It belongs to the bridge.
type lane struct {
	ep      *epoch
	limit   int
	running int
	due     bool       // there may be jobs to start
	next    func() job // nil when there is nothing to do
}

// What may be under way for one epoch: 64 jobs in all, most of them one request at a time,
// some up to 8; those that read a directory's children share maxReads slots. The bound keeps
// far from the 1000 requests at which a server stops reading.
const (
	maxMultis = 3  // transactions; the fewer there are, the more each carries. Measured: 3 or 4 are best
	maxSolos  = 29 // writes that cannot be part of a transaction
	maxReads  = 32
)

// slots bound the reads of those jobs that do many: all of them together, in an epoch.
type slots chan struct{}

// each calls read for each of n, some at a time. It blocks until all have returned, and
// returns the first error.
func (s slots) each(n int, read func(i int) error) error {
	var g errgroup.Group
	for i := range n {
		s <- struct{}{}
		g.Go(func() error {
			defer func() { <-s }()
			return read(i)
		})
	}
	return g.Wait()
}

// finished is a job's result, on its way to the bridge.
type finished struct {
	lane *lane
	then func()
}

// pump starts what may be started, for flush.
func (l *lane) pump() {
	for l.ep.up && (l.ep.started || l == &l.ep.starts.lane) && l.running < l.limit {
		work := l.next()
		if work == nil {
			return
		}
		l.running++
		work(func(then func()) { l.ep.core.self.Tell(&finished{l, then}) })
	}
}

// blocking is the job of doing work that blocks, on a goroutine of its own.
func (l *lane) blocking(work func() (then func())) job {
	return func(end func(func())) {
		l.ep.core.jobs.Go(func() { end(attempt(work)) })
	}
}

// attempt does the work; if that panics, so will the bridge, which cleans up.
func attempt(work func() (then func())) (then func()) {
	defer func() {
		if failure := recover(); failure != nil {
			then = func() { panic(fmt.Sprintf("in a call to ZooKeeper: %v", failure)) }
		}
	}()
	return work()
}

// finish takes a job's result. That of an epoch that is over is of no use: its
// requests have been answered.
func (l *lane) finish(then func()) {
	l.running--
	if l.ep.over {
		return
	}
	then()
	l.due = true
}

// fifo is a lane's queue of jobs in their order.
type fifo struct {
	lane
	queue []job
}

func newFifo(ep *epoch, limit int) *fifo {
	f := &fifo{}
	f.lane = lane{ep: ep, limit: limit, next: f.pop}
	return f
}

func (f *fifo) add(work job) {
	f.queue = append(f.queue, work)
	f.due = true
}

// do adds work that blocks.
func (f *fifo) do(work func() (then func())) { f.add(f.blocking(work)) }

func (f *fifo) pop() job {
	if len(f.queue) == 0 {
		return nil
	}
	work := f.queue[0]
	f.queue[0] = nil
	f.queue = f.queue[1:]
	return work
}
