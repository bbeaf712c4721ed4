// Package lease holds the state machines of the two ends of a lease, by which a client without a
// ZooKeeper session holds locks of a server that has one. They do no I/O, have no clock and set no
// timers. A lease here is no permit of a semaphore, as elsewhere in this module.
//
// # Words
//
// A renewal is a message of the client, with a number. The server answers it with a length of time,
// v. The client believes that the grants of its lease hold, until the end of its belief. Its lease
// has lapsed when that end has passed. The count of a lease is the server's bound on that end: no
// client believes later. A lease has ended when the server may give its grants to others.
//
// # The rule
//
// e is a two-hundredth, by which clocks may differ.
//
//  1. The client reads its clock before it sends a renewal, and believes until v(1-e) after that,
//     the latest over all answers. It checks its clock before it handles any message. A lapse is
//     final. A renewal is never sent again.
//  2. v is what the server may promise after the renewal has arrived: its session with ZooKeeper
//     outlasts it. The bridge closes no session before its promises have passed.
//  3. The server counts t + v(1+e) before it sends the answer, where t is its time. The count is
//     the maximum over all answers, delivered or not. The lease ends when the count has passed, or
//     when the client has said that it let go. A closed connection says nothing.
//  4. A renewal names the newest answer that the client has. The server answers no more renewals of
//     a stream while four of its answers are unconfirmed: one that no answer reaches must not keep
//     others out for ever. Answers that were lost with earlier streams do not matter for that.
//  5. A server that drains answers no more renewals after its grace. It closes its session when no
//     client may believe any more, and otherwise exits without closing it.
//
// client.go is the client's end, server.go the server's. PROOF.md shows that no two hold at a time.
// The tests run both ends in a model of ZooKeeper, of the bridge and of the faults between them; the
// files world_*_test.go are that model.
package lease
