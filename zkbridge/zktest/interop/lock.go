package interop

import (
	"strconv"
	"time"
)

// contendTimeout bounds each acquire of [Lock.Contend].
const contendTimeout = time.Minute

// Lock is a contender of another language: anything that is acquired and released, with a thread of its own on the
// other side. What it is acquired for is bound to that thread where the library does so, as Curator's mutex is.
type Lock struct {
	peer           *Peer
	name, threadID string
}

// Acquire waits until the lock is held, at most for the timeout, in whole milliseconds; 0 tries once. It reports
// whether the lock is held. The error is what the library threw.
func (l *Lock) Acquire(timeout time.Duration) (bool, error) {
	r := <-l.Begin(timeout)
	return r.Held, r.Err
}

// TryAcquire is an Acquire that does not wait for others.
func (l *Lock) TryAcquire() (bool, error) { return l.Acquire(0) }

// Result is how an acquire went.
type Result struct {
	Held bool
	Err  error
}

// Begin is an Acquire that does not block: the result comes through the channel. Until then every other call of this
// lock waits.
func (l *Lock) Begin(timeout time.Duration) <-chan Result {
	asked, result := l.ask("acquire", millis(timeout)), make(chan Result, 1)
	go func() {
		a := <-asked
		result <- Result{Held: a.err == nil && a.values[0] == "true", Err: a.err}
	}()
	return result
}

// Release releases the lock: once for each Acquire if the library counts them.
func (l *Lock) Release() error { return (<-l.ask("release")).err }

// Node returns the path of the contender's own node, and "" where it has none or its library does not tell.
func (l *Lock) Node() (string, error) {
	a := <-l.ask("node")
	if a.err != nil {
		return "", a.err
	}
	return a.values[0], nil
}

// Participants returns the participants as the library reports them: the paths of nodes with Curator, the contenders'
// identifiers with kazoo, which are the names of their objects and empty for those of others.
func (l *Lock) Participants() ([]string, error) {
	a := <-l.ask("participants")
	return a.values, a.err
}

// Leader returns the id of the leader of a LeaderLatch or LeaderSelector, and "" while none leads.
func (l *Lock) Leader() (string, error) {
	a := <-l.ask("leader")
	if a.err != nil {
		return "", a.err
	}
	return a.values[0], nil
}

// MakeRevocable has a Curator mutex listen to requests to give it back: for each an event of kind REVOKE comes. It goes
// before the Acquire.
func (l *Lock) MakeRevocable() (<-chan Event, error) {
	events := l.peer.listen(l.name)
	return events, (<-l.ask("revocable")).err
}

// Contend acquires, enters the resource, leaves it and releases, as many times as there are rounds, under that name in
// the resource. It does not block: the error, or nil, comes through the channel when all is done. An acquire that takes
// a minute is an error.
func (l *Lock) Contend(r *Resource, who string, rounds int) <-chan error {
	asked, done := l.ask("contend", r.file.Name(), who, strconv.Itoa(rounds), strconv.FormatInt(stay.Microseconds(), 10),
		millis(contendTimeout)), make(chan error, 1)
	go func() { done <- (<-asked).err }()
	return done
}

func (l *Lock) ask(verb string, args ...string) <-chan answer {
	return l.peer.ask(l.threadID, l.name, verb, args...)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// lock makes a contender with a thread of its own.
func (p *Peer) lock(kind string, args ...string) *Lock {
	p.t.Helper()
	name := p.object(kind, args...)
	return &Lock{p, name, name}
}
