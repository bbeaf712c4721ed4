package ask

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// ErrCancelled completes a future on which Cancel was called.
var ErrCancelled = errors.New("future was cancelled")

// Future is the result of a request, a value or an error, that comes later: select on Done,
// then call Result. Any goroutine may call its methods.
type Future[T any] struct {
	promise *Promise[T]
}

// Done returns a channel that is closed when the future is complete.
func (f *Future[T]) Done() <-chan struct{} { return f.promise.Done() }

// Result blocks until the future is complete, and returns its value or error.
func (f *Future[T]) Result() (T, error) {
	defer runtime.KeepAlive(f) // a future with a blocked Result is not dropped
	return f.promise.Take()
}

// ErrNilContext is the error of Wait for a nil context.
var ErrNilContext = errors.New("context is nil: use context.Background for no limit")

// Wait blocks until the future is complete or ctx has ended, and returns the future's value
// or error, or the cause of ctx. The end of ctx does not cancel the future: Wait may be
// called again.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	defer runtime.KeepAlive(f)
	var none T
	switch {
	case ctx == nil:
		return none, ErrNilContext
	case !f.promise.Await(ctx):
		return none, context.Cause(ctx)
	}
	return f.promise.Take()
}

// Cancel completes a pending future with ErrCancelled, or an error that wraps it. If the future is
// complete and no call has returned its value, Cancel releases the value, and the future has that
// error from then on. If a call has returned the value, Cancel does nothing. Cancel never blocks.
// [Reply.Wanted] reports the cancellation to the actor that has the request.
func (f *Future[T]) Cancel() {
	why := ErrCancelled
	if producer := f.promise.producer; producer != nil {
		why = producer.CancelError()
	}
	f.promise.Abandon(why)
	runtime.KeepAlive(f) // otherwise the finalizer may abandon it with ErrDropped
}

// Promise is the producer's side of a Future: it takes one value or error.
type Promise[T any] struct {
	future   Future[T]
	producer Producer[T] // may be nil

	// mu guards the fields below.
	mu    sync.Mutex
	state state
	// blocked is true if taking counts 1: a goroutine has blocked in Take or Await.
	blocked bool
	// taking is done when state is not pending. Unlike a channel, a WaitGroup needs no
	// allocation.
	taking sync.WaitGroup
	// done is closed when state is not pending. It is nil until the first call of Done.
	done  chan struct{}
	value T     // zero unless state is complete or consumed
	err   error // nil unless state is consumed
}

type state uint8

const (
	pending  state = iota // has no value and no error
	complete              // has a value that Take has not returned
	consumed              // Take has returned the value, or Abandon has given it back, or there is an error
)

// Producer makes the value of a promise.
type Producer[T any] interface {
	// Abandoned is called when the future is cancelled or dropped before Result has returned its
	// value: once at most, from any goroutine. value is the zero T if the promise was still
	// pending.
	Abandoned(value T, cause error)
	// CancelError returns the error of a future that is cancelled: ErrCancelled, or an error that
	// wraps it. Any goroutine calls it, at each Cancel.
	CancelError() error
}

// NewPromise returns a pending promise of the producer, which may be nil.
func NewPromise[T any](producer Producer[T]) *Promise[T] {
	p := &Promise[T]{producer: producer}
	p.future.promise = p
	return p
}

// ErrDropped is the cause of the abandonment of a promise whose future was garbage-collected
// before Result had returned its value.
var ErrDropped = errors.New("future was dropped")

// Future returns the consumer's side of the promise, with leak detection: the promise is
// abandoned with ErrDropped if the future is garbage-collected. Call it once.
func (p *Promise[T]) Future() *Future[T] {
	f := p.UntrackedFuture()
	ArmLeakDetection(f)
	return f
}

// UntrackedFuture returns the future without leak detection. The caller must keep it until it
// calls ArmLeakDetection, or until the promise is complete and its value taken. Leak detection
// takes several times as long as the rest of a promise's life, and most promises are complete
// before it matters.
func (p *Promise[T]) UntrackedFuture() *Future[T] {
	if p.producer == nil {
		return &p.future
	}
	return &Future[T]{p}
}

// ArmLeakDetection abandons the promise of f, which UntrackedFuture has returned, with
// ErrDropped when f is garbage-collected. It uses a finalizer: a cleanup would take half as
// much memory as the promise in addition.
func ArmLeakDetection[T any](f *Future[T]) {
	if p := f.promise; f != &p.future {
		runtime.SetFinalizer(f, func(f *Future[T]) { f.promise.Abandon(ErrDropped) })
	}
}

// Done returns a channel that is closed when the promise is complete.
func (p *Promise[T]) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state != pending:
		return closed
	case p.done == nil:
		p.done = make(chan struct{})
	}
	return p.done
}

// closed is the channel that Done returns for each promise that is complete at its first call.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wake wakes the goroutines that wait, at the first change of state. The caller holds p.mu.
func (p *Promise[T]) wake() {
	if p.done != nil {
		close(p.done)
	}
	if p.blocked {
		p.taking.Done()
	}
}

// Await blocks until the promise is complete or ctx has ended, and reports whether the
// promise is complete. It may be called again.
func (p *Promise[T]) Await(ctx context.Context) bool {
	ended := ctx.Done()
	if ended == nil {
		p.mu.Lock()
		p.blockLocked()
		p.mu.Unlock()
		return true
	}
	done := p.Done()
	if done == closed { // no select, because all promises would lock that one channel for it
		return true
	}
	select {
	case <-done:
		return true
	case <-ended:
		return false
	}
}

// Take blocks until the promise is complete, and returns its value or error.
func (p *Promise[T]) Take() (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blockLocked()
	p.state = consumed
	return p.value, p.err
}

// blockLocked waits until the promise is complete. The caller holds p.mu, which blockLocked
// releases while it waits.
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

// Abandon completes a pending promise with the error cause, and replaces a value that Take
// has not returned by that error; then it calls the producer's Abandoned. After Take,
// or after an error, it does nothing. Abandon never blocks.
func (p *Promise[T]) Abandon(cause error) {
	p.mu.Lock()
	was, value := p.state, p.value
	if was == consumed {
		p.mu.Unlock()
		return
	}
	var none T
	p.state, p.value, p.err = consumed, none, cause
	if was == pending {
		p.wake()
	}
	p.mu.Unlock()
	if p.producer != nil {
		p.producer.Abandoned(value, cause)
	}
}

// Complete completes the promise with a value or an error, and reports whether the promise
// was pending. Otherwise it does nothing. Complete never blocks.
func (p *Promise[T]) Complete(v T, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != pending {
		return false
	}
	p.state, p.value, p.err = complete, v, err
	if err != nil {
		p.state = consumed
	}
	p.wake()
	return true
}

// Wanted reports whether the promise is pending: it has no value, and its future was not
// cancelled.
func (p *Promise[T]) Wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pending
}

// Tell implements Recipient: it completes the promise with msg, which is a T or an error. A
// message of another type completes it with an error that names both types.
func (p *Promise[T]) Tell(msg any) {
	var none T
	switch answer := msg.(type) {
	case T:
		p.Complete(answer, nil)
	case error:
		p.Complete(none, answer)
	default:
		p.Complete(none, fmt.Errorf("ask: answer is a %T where a %T or an error was expected", msg, none))
	}
}
