// Package lockqueue is the state machine of one lock in one process. It applies a queue.Rule to the
// contenders in the lock's directory. It does no I/O and knows neither time nor contexts: events
// come in, effects go out.
//
// # Words
//
// An event is what happened to the lock, and an effect is what is to be done because of it. An entry
// is a contender of this process, with its requests. The clock counts the events that came so far. A
// serial is the number of an effect that asks for an answer; the answer has the same serial. An
// incarnation is the mark of one State in the names of its nodes. An own node is the node of a
// contender of this process. The list of contenders is complete up to completeThrough, a sequence
// number. A request near the end of the numbers waits outside: it has no node yet. A proof is an
// answer or a watch that shows an own node; a doubt is a value of the clock before which a proof
// does not count. A Tick comes from a timer, every second or more often. A barrier is a write after
// which a read shows all earlier writes.
//
// # Files
//
// A file uses only what stands before it in this list. What the State knows: event.go and effect.go,
// what comes in and goes out; names.go, what a name says of its maker; entry.go, the contenders;
// entrytable.go; numbers.go, how near their end the numbers are; rule.go; asked.go, what is not answered
// yet; state.go, the State.
//
// Reading and noting: view.go, the list of contenders; ownentries.go, those of this process;
// requests.go, their requests; questions.go, what the actor asks. Asking: list.go, lists
// of the directory; proof.go, watches, and which nodes are proven to exist; heldmarker.go, the
// marker of the lock-delay.
//
// Deciding: leave.go, the end of requests, entries and nodes; contention.go, the notice to holders
// that others wait; grant.go, which contender holds, and what the others wait for; reenter.go,
// further requests of an owner; acquire.go, a new request; gone.go, nodes of this process that
// others deleted. What an answer changes: numberend.go (the deletion of the directory), delay.go
// (the held marker), merge.go (lists), created.go, watch.go, failed.go. reconnect.go, session.go
// and close.go are about the end of a connection, of a session and of the lock.
// step.go applies an event. invariants.go says what holds between two events.
//
// One request on its way: step.go, acquire.go, created.go, grant.go, leave.go.
//
// testdata has scripts that read as stories; the first to read are alone, handoff, others,
// several-ahead, session, readwrite, downgrade and late-created. testdata/README.md explains how to
// read them.
//
// PROOF.md shows why two conflicting contenders never hold, and why the first in the queue comes to
// hold. It names fields, and is easier after the files.
package lockqueue
