// Package jobs runs the work of the bridge that takes its time, and what the bridge's actor does later.
package jobs

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Job is work that takes its time, but does not block. It calls end on any goroutine when it is
// done; then runs in the actor.
type Job func(end func(then func()))

// Jobs are the jobs of one kind of an epoch. They run in their order, at most limit at a time. They
// belong to the actor.
type Jobs struct {
	Slots ReadSlots // of the jobs that send many reads

	post     func(f func())  // has the actor call a function
	blocking *sync.WaitGroup // of the goroutines
	ended    bool
	limit    int
	running  int
	waiting  []Job
}

func newJobs(limit int, blocking *sync.WaitGroup, post func(f func())) *Jobs {
	return &Jobs{post: post, blocking: blocking, limit: limit, Slots: make(ReadSlots, limit)}
}

// Add adds a job.
func (j *Jobs) Add(work Job) { j.waiting = append(j.waiting, work) }

// AddBlocking adds work that blocks, on a goroutine of its own.
func (j *Jobs) AddBlocking(work func() (then func())) {
	j.Add(func(end func(func())) {
		j.blocking.Go(func() { end(runRecovering(work)) })
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

// HasWork reports whether Flush has a job to start.
func (j *Jobs) HasWork() bool { return j.running < j.limit && len(j.waiting) > 0 }

// Flush starts jobs until limit are running.
func (j *Jobs) Flush() {
	for j.HasWork() {
		work := j.waiting[0]
		j.waiting[0] = nil
		j.waiting = j.waiting[1:]
		j.running++
		work(func(then func()) { j.post(func() { j.onDone(then) }) })
	}
}

// Running returns how many jobs have been started and are not done.
func (j *Jobs) Running() int { return j.running }

// onDone handles a job's result.
func (j *Jobs) onDone(then func()) {
	j.running--
	if !j.ended {
		then()
	}
}

// ReadSlots bounds the reads of those jobs of one kind that send many: all of them together.
type ReadSlots chan struct{}

// Each calls read for each of n, some at a time, until ctx ends or a read fails. It blocks until
// all calls have returned, and returns the first error.
func (s ReadSlots) Each(ctx context.Context, n int, read func(i int) error) error {
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
