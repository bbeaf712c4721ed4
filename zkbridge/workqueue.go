package zkbridge

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// job is work that takes its time, but does not block. It calls end on any goroutine when it is
// done; then runs in the actor.
type job func(end func(then func()))

// workQueue runs the jobs of an epoch in their order, at most limit at a time, while the session is
// CONNECTED. It belongs to the actor.
type workQueue struct {
	epoch     *epoch
	limit     int
	running   int
	queue     []job
	readSlots readSlots // of the jobs that send many reads
}

// The bounds of an epoch's queues, beside writer.MaxSingle. Most jobs are one request at a time,
// and some up to 8; those that read the nodes of a directory share as many read slots as their
// queue has jobs. The sum keeps far from the 1000 requests at which a server stops reading. The
// fewer reads users have under way, the fewer answers come ahead of a lock's: each may have the
// size of a large node.
const (
	maxReads          = 32
	maxClosingsAtOnce = 2
	maxCalls          = 29
	maxSurveys        = 16
)

func newWorkQueue(ep *epoch, limit int) *workQueue {
	return &workQueue{epoch: ep, limit: limit, readSlots: make(readSlots, limit)}
}

func (q *workQueue) add(work job) { q.queue = append(q.queue, work) }

// addBlocking adds work that blocks, on a goroutine of its own.
func (q *workQueue) addBlocking(work func() (then func())) {
	q.add(func(end func(func())) {
		q.epoch.actor.blockingJobs.Go(func() { end(runRecovering(work)) })
	})
}

// runRecovering does the work. If the work panics, the actor panics, too, and cleans up.
func runRecovering(work func() (then func())) (then func()) {
	defer func() {
		if failure := recover(); failure != nil {
			then = func() { panic(fmt.Sprintf("in a call to ZooKeeper: %v", failure)) }
		}
	}()
	return work()
}

// hasWork reports whether flush has a job to start.
func (q *workQueue) hasWork() bool { return q.running < q.limit && len(q.queue) > 0 }

// flush starts jobs until limit are running.
func (q *workQueue) flush() {
	for q.hasWork() {
		work := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.running++
		work(func(then func()) { q.epoch.actor.self.TellAhead(task(func(*bridgeActor) { q.onDone(then) })) })
	}
}

// onDone handles a job's result, unless the epoch is over: its requests have been answered then.
func (q *workQueue) onDone(then func()) {
	q.running--
	if !q.epoch.over {
		then()
	}
}

// readSlots bounds the reads of those jobs of one queue that send many: all of them together.
type readSlots chan struct{}

// each calls read for each of n, some at a time, until ctx ends or a read fails. It blocks until
// all calls have returned, and returns the first error.
func (s readSlots) each(ctx context.Context, n int, read func(i int) error) error {
	g, reading := errgroup.WithContext(ctx)
	for i := 0; i < n && reading.Err() == nil; i++ {
		select {
		case s <- struct{}{}:
			g.Go(func() error {
				defer func() { <-s }()
				return read(i)
			})
		case <-reading.Done():
		}
	}
	return cmp.Or(g.Wait(), context.Cause(ctx))
}
