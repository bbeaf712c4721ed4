package zkbridge

import (
	"fmt"

	"golang.org/x/sync/errgroup"
)

// job is a piece of work that takes its time, but does not block. It calls end when it is
// done, on any goroutine; then runs in the bridge.
type job func(end func(then func()))

// jobRunner runs jobs for an epoch, so many at a time, while its session is connected.
// It belongs to the bridge.
type jobRunner struct {
	epoch    *epoch
	limit    int
	running  int
	mayStart bool       // there may be jobs to start
	next     func() job // nil when there is nothing to do
}

// What may be under way for one epoch: 64 jobs in all, most of them one request at a time,
// some up to 8; those that read a directory's children share maxReads slots. The bound keeps
// far from the 1000 requests at which a server stops reading.
const (
	maxTransactions = 3  // transactions; the fewer there are, the more each carries. Measured: 3 or 4 are best
	maxSingleWrites = 29 // writes that cannot be part of a transaction
	maxReads        = 32
)

// readSlots bound the reads of those jobs that do many: all of them together, in an epoch.
type readSlots chan struct{}

// each calls read for each of n, some at a time. It blocks until all have returned, and
// returns the first error.
func (s readSlots) each(n int, read func(i int) error) error {
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

// jobDone is a job's result, on its way to the bridge.
type jobDone struct {
	runner *jobRunner
	then   func()
}

// startJobs starts what may be started, for flush.
func (q *jobRunner) startJobs() {
	for q.epoch.connected && (q.epoch.started || q == &q.epoch.startQueue.jobRunner) && q.running < q.limit {
		work := q.next()
		if work == nil {
			return
		}
		q.running++
		work(func(then func()) { q.epoch.actor.self.Tell(&jobDone{q, then}) })
	}
}

// blocking is the job of doing work that blocks, on a goroutine of its own.
func (q *jobRunner) blocking(work func() (then func())) job {
	return func(end func(func())) {
		q.epoch.actor.blockingJobs.Go(func() { end(runRecovering(work)) })
	}
}

// runRecovering does the work; if that panics, so will the bridge, which cleans up.
func runRecovering(work func() (then func())) (then func()) {
	defer func() {
		if failure := recover(); failure != nil {
			then = func() { panic(fmt.Sprintf("in a call to ZooKeeper: %v", failure)) }
		}
	}()
	return work()
}

// onDone takes a job's result. That of an epoch that is over is of no use: its
// requests have been answered.
func (q *jobRunner) onDone(then func()) {
	q.running--
	if q.epoch.over {
		return
	}
	then()
	q.mayStart = true
}

// workQueue is a lane's queue of jobs in their order.
type workQueue struct {
	jobRunner
	queue []job
}

func newWorkQueue(ep *epoch, limit int) *workQueue {
	f := &workQueue{}
	f.jobRunner = jobRunner{epoch: ep, limit: limit, next: f.pop}
	return f
}

func (q *workQueue) add(work job) {
	q.queue = append(q.queue, work)
	q.mayStart = true
}

// addBlocking adds work that blocks.
func (q *workQueue) addBlocking(work func() (then func())) { q.add(q.blocking(work)) }

func (q *workQueue) pop() job {
	if len(q.queue) == 0 {
		return nil
	}
	work := q.queue[0]
	q.queue[0] = nil
	q.queue = q.queue[1:]
	return work
}
