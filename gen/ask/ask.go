// Package ask is the runtime of generated actor code. ask.go has the [Recipient] of messages,
// the [Reply] that a handler may send later, and the functions [Send] and [Ask]; future.go has
// the [Future] that Ask returns, and its [Promise].
//
// The package depends on no actor system. Package host runs handlers in protoactor.
package ask

// Version1 is the version of this package that generated code refers to. A compile error
// about this name means that the code was generated for another version: run go generate
// again with the version in go.mod.
const Version1 = true

// A Recipient receives messages: an actor, or the promise of a future.
type Recipient interface {
	// Tell sends a message. It never blocks. Messages from one sender to one recipient
	// arrive in order.
	Tell(msg any)
}

// Call is a message with its sender, as References put it into a mailbox. A message without
// a sender goes into the mailbox as it is. Package host unwraps a Call.
type Call struct {
	Message any
	From    Recipient
}

// Unwrap implements Envelope.
func (c *Call) Unwrap() (from Recipient, msg any) { return c.From, c.Message }

// An Envelope holds a message and its sender. A sender with few different messages can
// implement Envelope itself, which saves the allocation of a Call for each.
type Envelope interface {
	// Unwrap returns the message, and its sender or nil.
	Unwrap() (from Recipient, msg any)
}

// A Reply answers one message with a T or an error, now or later. Answer once: a future
// takes the first answer and ignores the others, but an actor receives all. The zero Reply
// drops its answer.
type Reply[T any] struct {
	to Recipient
}

// ReplyTo returns the Reply that answers the recipient to. If to is nil, it is the zero
// Reply.
func ReplyTo[T any](to Recipient) Reply[T] { return Reply[T]{to} }

// Answer sends v as the answer. It never blocks.
func (r Reply[T]) Answer(v T) {
	if r.to != nil {
		r.to.Tell(v)
	}
}

// Refuse sends err, which must not be nil, as the answer. It never blocks. Only an err that
// is a message type of the protocol can reach another process.
func (r Reply[T]) Refuse(err error) {
	if r.to != nil {
		r.to.Tell(err)
	}
}

// Wanted reports whether the recipient still waits for the answer. It returns false for a
// future that was cancelled or has an answer, and for the zero Reply. It returns true for an
// actor, unless the actor has a method Wanted() bool that returns false. A handler should
// call it before long work, and before it answers a Reply that it has kept. Wanted never
// blocks, and any goroutine may call it.
func (r Reply[T]) Wanted() bool {
	if to, ok := r.to.(interface{ Wanted() bool }); ok {
		return to.Wanted()
	}
	return r.to != nil
}

// Recipient returns the recipient of the answer, or nil.
func (r Reply[T]) Recipient() Recipient { return r.to }

// Send sends msg to the recipient to, with the sender from. The answer arrives at from as a
// message. Send never blocks.
func Send(to Recipient, msg any, from Recipient) {
	if mailbox, ok := to.(SenderTaker); ok {
		mailbox.TellFrom(msg, from)
		return
	}
	to.Tell(&Call{Message: msg, From: from})
}

// A SenderTaker is a Recipient that takes a message and its sender without a Call, which saves the
// allocation.
type SenderTaker interface {
	// TellFrom is Tell for a message with its sender, which may be nil.
	TellFrom(msg any, from Recipient)
}

// A Withdrawer is a request that can be withdrawn, such as the Acquire of a lock.
type Withdrawer interface {
	// Withdrawal returns the message that withdraws this request, or undoes its result if
	// the request was answered.
	Withdrawal() any
}

// Ask sends msg to the recipient to, and returns a future that the answer completes. It never
// blocks. If msg is a Withdrawer, Ask sends its Withdrawal when the future is cancelled or
// dropped before Result has returned the answer.
func Ask[T any](to Recipient, msg any) *Future[T] {
	a := new(struct {
		promise Promise[T]
		call    Call
	}) // one allocation in place of two
	a.promise.future.promise = &a.promise
	a.call = Call{Message: msg, From: &a.promise}
	if w, ok := msg.(Withdrawer); ok {
		a.promise.producer = &withdrawer[T]{to, w, &a.promise}
	}
	f := a.promise.Future()
	to.Tell(&a.call)
	return f
}

// withdrawer is the Producer of an answer to a Withdrawer.
type withdrawer[T any] struct {
	to      Recipient
	request Withdrawer
	promise *Promise[T]
}

// Abandoned implements Producer.
func (w *withdrawer[T]) Abandoned(T, error) { Send(w.to, w.request.Withdrawal(), w.promise) }

// CancelError implements Producer.
func (w *withdrawer[T]) CancelError() error { return ErrCancelled }
