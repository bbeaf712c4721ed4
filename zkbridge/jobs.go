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

// jobs are the jobs of one kind of an epoch. They run in their order, at most limit at a time, while
// the session is CONNECTED. They belong to the actor.
type jobs struct {
	epoch     *epoch
	limit     int
	running   int
	waiting   []job
	readSlots readSlots // of the jobs that send many reads
}

// How many jobs of each kind may run at a time, beside writer.MaxSingle. Most jobs are one request at
// a time, and some up to 8; those that read the nodes of a directory share as many read slots as may
// run of them. The sum keeps far from the 1000 requests at which a server stops reading. The fewer
// reads users have under way, the fewer answers come ahead of a lock's: each may have the size of a
// large node.
const (
	maxReads          = 32
	maxClosingsAtOnce = 2
	maxCalls          = 29
	maxSurveys        = 16
)

func newJobs(ep *epoch, limit int) *jobs {
	return &jobs{epoch: ep, limit: limit, readSlots: make(readSlots, limit)}
}

func (j *jobs) add(work job) { j.waiting = append(j.waiting, work) }

// addBlocking adds work that blocks, on a goroutine of its own.
func (j *jobs) addBlocking(work func() (then func())) {
	j.add(func(end func(func())) {
		j.epoch.actor.blockingJobs.Go(func() { end(runRecovering(work)) })
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
func (j *jobs) hasWork() bool { return j.running < j.limit && len(j.waiting) > 0 }

// flush starts jobs until limit are running.
func (j *jobs) flush() {
	for j.hasWork() {
		work := j.waiting[0]
		j.waiting[0] = nil
		j.waiting = j.waiting[1:]
		j.running++
		work(func(then func()) { j.epoch.actor.self.TellAhead(task(func(*bridgeActor) { j.onDone(then) })) })
	}
}

// onDone handles a job's result, unless the epoch is over: its requests have been answered then.
func (j *jobs) onDone(then func()) {
	j.running--
	if !j.epoch.over {
		then()
	}
}

// readSlots bounds the reads of those jobs of one kind that send many: all of them together.
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
