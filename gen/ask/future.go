package ask

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// ErrCancelled completes a future on which Cancel was called.
var ErrCancelled = errors.New("future was cancelled")

// Future is a value, or an error, that comes later: select on Done, then read
// Result. All methods may be called from any goroutine.
type Future[T any] struct {
	promise *Promise[T]
}

// Done is closed when the future is complete.
func (f *Future[T]) Done() <-chan struct{} { return f.promise.Done() }

// Result blocks until the future is complete and gives what it holds.
func (f *Future[T]) Result() (T, error) {
	defer runtime.KeepAlive(f) // who waits has not dropped it
	return f.promise.Take()
}

// ErrNilContext is the error of Wait with a nil context.
var ErrNilContext = errors.New("context is nil: use context.Background for no limit")

// Wait blocks until the future is complete or ctx ends, whichever comes first. A
// future whose Wait ended early is still pending and may be waited for again.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	defer runtime.KeepAlive(f)
	if ctx == nil {
		var none T
		return none, ErrNilContext
	}
	if !f.promise.Await(ctx) {
		var none T
		return none, context.Cause(ctx)
	}
	return f.promise.Take()
}

// Cancel gives the future up. A pending future completes with ErrCancelled; a
// value that came but that nobody took is given back. After Result it does nothing.
// It never blocks. An actor that keeps the Reply to a question can ask [Reply.Wanted].
func (f *Future[T]) Cancel() {
	f.promise.Abandon(ErrCancelled)
	runtime.KeepAlive(f) // else it may be given up as dropped
}

// Promise is the other side of a Future: it takes the value, once.
type Promise[T any] struct {
	future  Future[T]
	abandon func(value T, why error)

	mu      sync.Mutex
	state   state
	blocked bool           // somebody is in Take
	taking  sync.WaitGroup // they wait for it: it takes no memory of its own, as a channel does
	done    chan struct{}  // closed with the first change of state; nil if nobody has asked for it
	value   T
	err     error
}

type state uint8

const (
	pending  state = iota
	complete       // nobody has read the value yet
	settled        // read, given back, or an error from the start
)

// NewPromise makes a pending promise. abandon, if not nil, is called at most once
// and from any goroutine: when the user of the future gives it up before it has a
// value, or has got one without taking it. value is the zero T in the first case.
func NewPromise[T any](abandon func(value T, why error)) *Promise[T] {
	p := &Promise[T]{abandon: abandon}
	p.future.promise = p
	return p
}

// ErrDropped is why a promise is abandoned whose future was forgotten: collected
// as garbage, pending or with a value that nobody took.
var ErrDropped = errors.New("future was dropped")

// Future is the side for the one who waits.
func (p *Promise[T]) Future() *Future[T] {
	if p.abandon == nil {
		return &p.future
	}
	f := p.UntrackedFuture()
	ArmLeakDetection(f)
	return f
}

// UntrackedFuture is Future, but nobody notices that the future is dropped before ArmLeakDetection is called
// with it, by somebody who keeps it until then. To notice takes several times as long
// as the rest of a promise's life; most are over before it matters.
func (p *Promise[T]) UntrackedFuture() *Future[T] {
	if p.abandon == nil {
		return &p.future
	}
	return &Future[T]{p}
}

// ArmLeakDetection has it noticed from now on if a future that UntrackedFuture gave is dropped. (By a finalizer:
// a cleanup would take as much memory again as half of the promise.)
func ArmLeakDetection[T any](f *Future[T]) {
	if p := f.promise; f != &p.future {
		runtime.SetFinalizer(f, func(f *Future[T]) { f.promise.Abandon(ErrDropped) })
	}
}

// Done is closed when the promise is complete.
func (p *Promise[T]) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doneLocked()
}

func (p *Promise[T]) doneLocked() <-chan struct{} {
	switch {
	case p.state != pending:
		return closed
	case p.done == nil:
		p.done = make(chan struct{})
	}
	return p.done
}

// closed is what Done gives when there is nothing to wait for.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wake is for the first change of state. It needs p.mu.
func (p *Promise[T]) wake() {
	if p.done != nil {
		close(p.done)
	}
	if p.blocked {
		p.taking.Done()
	}
}

// Await blocks until the promise is complete or ctx ends, whichever comes first, and
// tells if it is complete. It may be called again.
func (p *Promise[T]) Await(ctx context.Context) bool {
	ended := ctx.Done()
	if ended == nil {
		p.mu.Lock()
		p.blockLocked()
		p.mu.Unlock()
		return true
	}
	done := p.Done()
	if done == closed { // without a select, for which all would lock that one channel
		return true
	}
	select {
	case <-done:
		return true
	case <-ended:
		return false
	}
}

// Take blocks until the promise is complete and gives what it holds.
func (p *Promise[T]) Take() (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blockLocked()
	p.state = settled
	return p.value, p.err
}

func (p *Promise[T]) blockLocked() {
	if p.state != pending {
		return
	}
	if !p.blocked {
		p.blocked = true
		p.taking.Add(1)
	}
	p.mu.Unlock()
	p.taking.Wait()
	p.mu.Lock()
}

// Abandon gives the promise up, because of why, which is its error from then on:
// pending, it completes; complete, its value is given back unless somebody took it.
func (p *Promise[T]) Abandon(why error) {
	p.mu.Lock()
	was, value := p.state, p.value
	if was == settled {
		p.mu.Unlock()
		return
	}
	var none T
	p.state, p.value, p.err = settled, none, why
	if was == pending {
		p.wake()
	}
	p.mu.Unlock()
	if p.abandon != nil {
		p.abandon(value, why)
	}
}

// Complete gives the promise its value or error. Only the first call counts; it
// returns true.
func (p *Promise[T]) Complete(v T, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != pending {
		return false
	}
	p.state, p.value, p.err = complete, v, err
	if err != nil {
		p.state = settled
	}
	p.wake()
	return true
}

// Wanted reports whether the promise is pending: it can take a value, and its future was not
// given up.
func (p *Promise[T]) Wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pending
}

// Tell completes the promise with an answer, which makes it a Recipient: a T is its
// value, an error its error.
func (p *Promise[T]) Tell(msg any) {
	var none T
	switch answer := msg.(type) {
	case T:
		p.Complete(answer, nil)
	case error:
		p.Complete(none, answer)
	default:
		p.Complete(none, unexpected[T](msg))
	}
}
