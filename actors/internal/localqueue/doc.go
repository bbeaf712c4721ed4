// Package localqueue is the state machine of a local queue: the owners of one process use one
// contender of a lock in turn. It does no I/O and knows neither time nor contexts: its effects say
// what is to be done (package stack).
//
// # Rules
//
// The lock below is acquired once, as a contender like any other, and granted to the owners of the
// process in their order. What the queue holds of the lock is its node hold: one node, or a
// writer's and a reader's beside it.
//
//   - The lock below excludes other processes. Within the process holders are
//     counted by kind (queue.Census): an owner holds beside them if the rule blocks none of them.
//   - Requests are granted in their order (waiting). No request passes an earlier one.
//   - While no other process waits, the queue keeps the node hold; an idle timer ends that. When
//     others wait, it releases the nodes as soon as no owner uses them, or when the budget of
//     grants or of time is used, and then queues again behind the others.
//   - A client that asks for a node uses up the budget. Each holder hears of it, also one that enters again
//     later (notify): the loss of the node would end its grant.
//   - The loss of a node ends all grants that were made of the node hold.
//   - News of an earlier node hold do not count: each request for a node has an ID of its own.
//   - Tokens of one node hold differ by their step: the number of the grant. A later node hold has
//     a later czxid. So the tokens of conflicting grants increase.
//
// Every request ends. The first to wait is granted as soon as the rule allows it beside the
// holders; without a node one is asked for (serve); a node hold that does not suffice for the first
// in line is released once the holders have gone.
//
// # Files
//
// To be read in this order: queue.go, the fields, the calls and what goes out; decide.go, what the
// queue decides; owners.go, the owners of the process; invariants.go, what holds between two calls.
//
// # Faults that show that the rules are needed
//
// Three of the faults in actors/simulation/planted: budget-never-used (the budget),
// revoked-node-passed-on (a client that asks for a node) and old-node-hold-counts (news of an
// earlier node hold).
//
// # Speed
//
// An acquire of an owner that finds the node hold idle needs no ZooKeeper at all. localOwner values
// are re-used (spare).
package localqueue
