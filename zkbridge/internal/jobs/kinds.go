package jobs

import "sync"

// Kinds are the jobs of an epoch. Each kind has slots of its own, so that none waits for another kind.
type Kinds struct {
	Start    *Jobs // of what must be done before requests; they run also before the session is ready
	Singles  *Jobs // of what locks need and is not part of a batch
	Reads    *Jobs // of locks
	Closings *Jobs // of lost sessions
	Calls    *Jobs // of users that wait for a transaction, or for a read of one node
	Surveys  *Jobs // of users that read all nodes of a directory
}

// How many jobs of each kind may run at a time, beside the single requests of the writer. Most jobs are one request at
// a time, and some up to 8; those that read the nodes of a directory share as many read slots as may
// run of them. The sum keeps far from the 1000 requests at which a server stops reading. The fewer
// reads users have under way, the fewer answers come ahead of a lock's: each may have the size of a
// large node.
const (
	MaxReads          = 32
	maxClosingsAtOnce = 2
	MaxCalls          = 29
	MaxSurveys        = 16
)

// NewKinds returns the jobs of an epoch, of which at most singles run at a time that are single
// requests of locks. post, which any goroutine may call, has the actor call a function. The goroutines
// of the jobs are among those of blocking.
func NewKinds(singles int, blocking *sync.WaitGroup, post func(f func())) *Kinds {
	of := func(limit int) *Jobs { return newJobs(limit, blocking, post) }
	return &Kinds{of(1), of(singles), of(MaxReads), of(maxClosingsAtOnce), of(MaxCalls), of(MaxSurveys)}
}

// Ready returns the jobs of a session that is ready, in the order in which they are flushed: what locks
// need comes first.
func (k *Kinds) Ready() []*Jobs { return []*Jobs{k.Singles, k.Reads, k.Closings, k.Calls, k.Surveys} }

// End has no further result handled: the epoch is over, and its requests have been answered.
func (k *Kinds) End() {
	for _, j := range append(k.Ready(), k.Start) {
		j.ended = true
	}
}
