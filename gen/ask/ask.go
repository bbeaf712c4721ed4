// Package ask is the small runtime of generated actor code: recipients of
// messages, replies that may come later, and futures on channels. It knows no
// actor system; package host (beside it) runs handlers in protoactor.
package ask

import "fmt"

// Version1 is referred to by generated code. If it does not compile because of
// this name, the code was generated for another version of this package: run
// go generate again with the version that go.mod names.
const Version1 = true

// A Recipient takes messages: an actor, a future, whoever asked.
type Recipient interface {
	// Tell hands over a message. It never blocks; messages of one sender to one
	// recipient keep their order.
	Tell(msg any)
}

// Call is a message together with whom to answer. References put it into an
// actor's mailbox where the sender counts, and the bare message where it does not;
// package host takes a Call apart again.
type Call struct {
	Message any
	From    Recipient
}

// Unwrap implements Envelope.
func (c *Call) Unwrap() (from Recipient, msg any) { return c.From, c.Message }

// An Envelope in a mailbox is as good as the Call that it opens to. A sender that says few
// different things can be the Envelope itself, which saves making a Call for each.
type Envelope interface {
	Unwrap() (from Recipient, msg any)
}

// A Reply is the right to answer one message, now or at any later time. The
// answer is a T or an error. Answer once: a future takes the first answer only,
// an actor would get each. The zero Reply drops what it is given.
type Reply[T any] struct {
	to Recipient
}

// ReplyTo makes the Reply that answers to; to may be nil.
func ReplyTo[T any](to Recipient) Reply[T] { return Reply[T]{to} }

// Answer sends the reply.
func (r Reply[T]) Answer(v T) {
	if r.to != nil {
		r.to.Tell(v)
	}
}

// Refuse sends an error, not nil, in place of the reply. To reach another process it
// must be a message type of the protocol, which may well implement error.
func (r Reply[T]) Refuse(err error) {
	if r.to != nil {
		r.to.Tell(err)
	}
}

// Wanted reports whether the answer can still be of use. It is false once the future of the
// question was cancelled or has got an answer, and always for the zero Reply. It is true for
// an actor that asked, unless that tells better by a method Wanted of its own. A handler
// that keeps a Reply for later, or has much work to do for the answer, should look here
// before it begins. Wanted never blocks, and may be called from any goroutine.
func (r Reply[T]) Wanted() bool {
	if to, knows := r.to.(interface{ Wanted() bool }); knows {
		return to.Wanted()
	}
	return r.to != nil
}

// Recipient is whom this Reply answers, or nil.
func (r Reply[T]) Recipient() Recipient { return r.to }

// Send hands msg to the recipient to; the answer goes to from, as a message.
func Send(to Recipient, msg any, from Recipient) {
	to.Tell(&Call{Message: msg, From: from})
}

// A Withdrawer is a message that asks for what can be withdrawn, such as a lock: it tells
// by which message.
type Withdrawer interface {
	// Withdrawal returns the message that withdraws what this one asks for, and gives back
	// what it has got.
	Withdrawal() any
}

// Ask hands msg to the recipient to; the answer completes the future. If msg is a
// Withdrawer, the recipient is sent its Withdrawal when the future is given up: by Cancel,
// or dropped, before Result has returned the answer.
func Ask[T any](to Recipient, msg any) *Future[T] {
	a := new(struct {
		promise Promise[T]
		call    Call
	}) // in one piece, which is quicker
	a.promise.future.promise = &a.promise
	a.call = Call{Message: msg, From: &a.promise}
	if w, ok := msg.(Withdrawer); ok {
		a.promise.abandon = func(T, error) { Send(to, w.Withdrawal(), &a.promise) }
	}
	f := a.promise.Future()
	to.Tell(&a.call)
	return f
}

func unexpected[T any](msg any) error {
	var want T
	return fmt.Errorf("ask: answer is a %T where a %T or an error was expected", msg, want)
}
