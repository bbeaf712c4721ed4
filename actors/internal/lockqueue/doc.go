// Package lockqueue is the state machine of one lock in one process. It applies a queue.Rule to the
// contenders in the lock's directory. It does no I/O and knows neither time nor contexts: events
// come in, effects go out.
//
// # Words
//
// An event is what happened to the lock, and an effect is what is to be done because of it. The
// clock counts the events that came so far. A serial is the number of an effect that asks for an
// answer; the answer has the same serial. An incarnation is the mark of one State in the names of
// its nodes. An own node is the node of a contender of this process. The list of contenders is
// complete up to completeThrough, a sequence number. A request near the end of the numbers waits
// outside: it has no node yet. A proof is an answer or a watch that shows an own node; a doubt is a
// value of the clock before which a proof does not count. A Tick comes from a timer, every second
// or more often. A barrier is a write after which a read shows all earlier writes.
//
// # Files
//
// To be read in this order: event.go and effect.go, what comes in and goes out; view.go, what is
// known of the directory; entry.go, the contenders of this process; proof.go, which of their nodes
// are proven to exist. Next a request on its way: state.go, the State and Step; acquire.go, from
// its Acquire to its Created; grant.go, which contender holds; wait.go, which ones wait, and what
// wakes them; session.go, sessions and their loss. Then what these call: list.go, when the
// directory is listed; merge.go, what a list changes; rule.go, questions to the rule; requests.go
// and leave.go, the ends of requests and of entries; gone.go, own nodes that others deleted;
// reconnect.go; failed.go; close.go. Then what few locks need: reenter.go, tries.go, numberend.go,
// delay.go, contention.go, revoke.go. incarnation.go makes the names of nodes; entrytable.go and
// scratch.go save memory; invariants.go says what holds between two events.
//
// testdata has scripts that read as stories; the first to read are alone, handoff, others,
// several-ahead, session, readwrite, downgrade and late-created. testdata/README.md explains how to
// read them.
//
// PROOF.md shows why two conflicting contenders never hold, and why the first in the queue comes to
// hold. It names fields, and is easier after the files.
package lockqueue
