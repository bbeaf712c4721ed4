package interop

import (
	"strconv"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// contendTimeout bounds each acquire of [Lock.Contend].
const contendTimeout = zktest.TimeLimit

// Lock is a contender of another language: any object that is acquired and released, with a thread
// of its own in the other process. That thread is the owner if the library has one, as Curator's
// mutex does.
type Lock struct {
	peer           *Peer
	name, threadID string
}

// Acquire waits until the lock is held, at most for the timeout, in whole milliseconds; 0 tries
// once. It reports whether the lock is held. The error is the library's exception.
func (l *Lock) Acquire(timeout time.Duration) (bool, error) {
	r := <-l.Begin(timeout)
	return r.Held, r.Err
}

// TryAcquire is Acquire without a wait for other holders.
func (l *Lock) TryAcquire() (bool, error) { return l.Acquire(0) }

// Result is the result of an acquire.
type Result struct {
	Held bool
	Err  error
}

// Begin is Acquire, but does not block: it returns a channel for the result. Every other call of
// this lock waits for the result.
func (l *Lock) Begin(timeout time.Duration) <-chan Result {
	answered, result := l.ask("acquire", millis(timeout)), make(chan Result, 1)
	go func() {
		a := <-answered
		result <- Result{Held: a.err == nil && a.values[0] == "true", Err: a.err}
	}()
	return result
}

// Release releases the lock: once for each Acquire if the library counts them.
func (l *Lock) Release() error { return (<-l.ask("release")).err }

// Node returns the path of the contender's own node, and "" if it has none or its library does not
// report it.
func (l *Lock) Node() (string, error) {
	a := <-l.ask("node")
	if a.err != nil {
		return "", a.err
	}
	return a.values[0], nil
}

// Participants returns the participants as the library reports them: the paths of nodes with
// Curator, the contenders' identifiers with kazoo, which are the names of their objects, and empty
// for contenders of other clients.
func (l *Lock) Participants() ([]string, error) {
	a := <-l.ask("participants")
	return a.values, a.err
}

// Leader returns the id of the leader of a LeaderLatch or LeaderSelector, and "" without a leader.
func (l *Lock) Leader() (string, error) {
	a := <-l.ask("leader")
	if a.err != nil {
		return "", a.err
	}
	return a.values[0], nil
}

// MakeRevocable makes a Curator mutex revocable: each request to release it leads to an event of
// kind REVOKE. It must be called before Acquire.
func (l *Lock) MakeRevocable() (<-chan Event, error) {
	events := l.peer.listen(l.name)
	return events, (<-l.ask("revocable")).err
}

// Contend acquires, enters the resource, leaves it and releases, once in each round. The name is
// the contender's in the resource. Contend does not block: it returns a channel for the error, or
// nil, after all rounds. An acquire that takes a minute is an error.
func (l *Lock) Contend(r *Resource, name string, rounds int) <-chan error {
	answered, done := l.ask("contend", r.file.Name(), name, strconv.Itoa(rounds), strconv.FormatInt(holdTime.Microseconds(), 10),
		millis(contendTimeout)), make(chan error, 1)
	go func() { done <- (<-answered).err }()
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
