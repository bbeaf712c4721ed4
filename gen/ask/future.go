package ask

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrCancelled completes a future on which Cancel was called.
var ErrCancelled = errors.New("future was cancelled")

// Future is a value, or an error, that comes later: select on Done, then read
// Result. All methods may be called from any goroutine.
type Future[T any] struct {
	call    Call
	done    chan struct{}
	state   atomic.Uint32
	value   T
	err     error
	abandon func(value T, err error)
}

// A future is pending, then written by the one who won the race to complete it,
// then complete. taken is set in addition once somebody read or dropped the value.
const (
	pending uint32 = iota
	writing
	complete
	taken
)

// NewFuture makes a pending future. abandon, if not nil, is called at most once,
// when the future's user gives it up: by Cancel, or by losing interest in a value
// that nobody took. err tells why, value is what the future held by then (the
// zero T if nothing).
func NewFuture[T any](abandon func(value T, err error)) *Future[T] {
	return &Future[T]{done: make(chan struct{}), abandon: abandon}
}

// Done is closed when the future is complete.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// Result blocks until the future is complete and gives what it holds.
func (f *Future[T]) Result() (T, error) {
	<-f.done
	f.state.CompareAndSwap(complete, taken)
	return f.value, f.err
}

// Wait blocks until the future is complete or ctx ends, whichever comes first.
// A future given up by ctx is still pending and may be waited for again.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.Result()
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Cancel gives the future up. A pending future completes with ErrCancelled; a
// value that came but that nobody took is given back. After Result it does nothing.
// It never blocks.
func (f *Future[T]) Cancel() { f.Abandon(ErrCancelled) }

// Abandon is Cancel with another error. It reports whether the future was given
// up by this call.
func (f *Future[T]) Abandon(err error) bool {
	var none T
	if f.Complete(none, err) {
		f.state.Store(taken)
		if f.abandon != nil {
			f.abandon(none, err)
		}
		return true
	}
	<-f.done // another goroutine is writing the value: a few instructions
	if f.err == nil && f.state.CompareAndSwap(complete, taken) {
		if f.abandon != nil {
			f.abandon(f.value, err)
		}
		return true
	}
	return false
}

// Complete gives the future its value or error. Only the first call counts; it
// returns true.
func (f *Future[T]) Complete(v T, err error) bool {
	if !f.state.CompareAndSwap(pending, writing) {
		return false
	}
	f.value, f.err = v, err
	f.state.Store(complete)
	close(f.done)
	return true
}

// Tell completes the future with an answer, which makes it a Recipient: a T is
// its value, an error its error.
func (f *Future[T]) Tell(msg any) {
	var none T
	switch answer := msg.(type) {
	case T:
		f.Complete(answer, nil)
	case error:
		f.Complete(none, answer)
	default:
		f.Complete(none, unexpected[T](msg))
	}
}
