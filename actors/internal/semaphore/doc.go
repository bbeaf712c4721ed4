// Package semaphore is the state machine of the requests of one process for the permits of a
// semaphore. It does no I/O and knows neither time nor contexts: its effects say what is to be done
// (package stack).
//
// # Rules
//
// A semaphore consists of two locks, of which a request uses one after the other. The request
// queue, with the rule queue.RequestQueue, has one node for each request and decides whose turn it
// is. The leases, with the rule queue.Leases, are one node for each permit in use.
//
//   - A request asks for leases only once it has passed the request queue. It asks for all of its
//     leases at once, and leaves the request queue when it has them, or ends. The request queue lets
//     in one process at a time, so of all processes only one can have some leases of a request and
//     lack others, and no two wait for each other.
//   - Requests of this process that stand in the request queue one behind the other pass it
//     together. They ask for leases one behind the other (asked). A request that is granted leases
//     before its turn, because nodes were deleted and made again, releases them (requeue).
//   - A request that lacks some of its leases has the others as a holder has them: a watch reports their
//     deletion once a Tick has set it (package lockqueue). They are not proven anew when the
//     last lease is granted, so the grant is lost right behind if one of them was deleted unheard.
//   - Leases are counted by ZooKeeper's list of them: a lease holds if fewer than Permits nodes are
//     before its own. So exclusion does not rest on the request queue.
//   - A grant has the token of its last lease. The leases of an atomic create have one step, and
//     atomic creates in one transaction have different ones. So tokens of different requests differ.
//
// A request of a multi-lock stops behind the request queue (ReportTurn) until the multi-lock has
// passed the request queues of all its semaphores and calls Proceed: then one transaction makes the
// leases of all semaphores and the nodes of all other members. These leases are made at once and
// granted in the order of the lock below, so such a request keeps to no order of its own process.
// If one of its nodes is lost before the grant, the request is refused: the whole multi-lock begins
// anew.
//
// Leases are asked for before there is room. Curator does so, too, with the request that is first:
// it then holds as soon as there is room, and not a round trip later. Here the requests behind it
// do so as well, for as many leases as the semaphore has and lookAhead at least. More are not
// needed: only what is released within a round trip can be granted to them, and each is a child of
// the leases that holds nothing. (To other processes that makes no difference. They look at the
// leases only once they have passed the request queue, and then all of those before them hold.)
//
// # Files
//
// To be read in this order: state.go, the fields and the calls of owners; queue.go, the way through
// the request queue to the leases; invariants.go, what holds between two calls.
//
// # Faults that show that the rules are needed
//
// Two of the faults in actors/simulation/planted: request-queue-left-early (a request leaves the
// request queue before it has its leases) and leases-of-another-turn (leases before its turn).
package semaphore
