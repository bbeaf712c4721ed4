// Package lockqueue is the state machine of one lock in one process: it applies a
// queue.Rule to the contenders in the lock's directory. It does no I/O and knows neither time
// nor contexts: events come in, effects go out.
//
// Three other state machines are beside it: semaphore.State, of a semaphore's two
// directories; localqueue.Queue, of the owners of one process that share a contender; and
// simplelock.Contender, of locks that are one node instead of a queue.
//
// # The guarantees that they rest on
//
// ZooKeeper guarantees, and the bridge keeps up:
//
//   - Writes. The zxids of all writes are in one order. ZooKeeper executes a transaction
//     as a whole or not at all, and all nodes that it makes have its zxid as czxid.
//   - Numbers. Every creation in a directory takes the next number, also one of a node without
//     a number in its name. The last one is 2^31-1. A directory that was deleted and made again begins at 0 and has
//     a greater czxid.
//   - Reads. The requests of one session are answered in their order. A read shows all
//     writes of its session that came before it, and what the session has read once it
//     never reads an older state of. It may show a state that is older than what other
//     sessions have read.
//   - Watches. A session hears of a change that it watches before it reads that change or
//     anything later. A connection that is gone ends this until the watches are set again.
//   - Sessions. The nodes of a session stay until they are deleted or until the session
//     ends. A session does not end before the bridge's deadline (package zkbridge), at which
//     the bridge says Lost, and all grants of the session end.
//
// The window of trust is that last point, and one more: a node that another client deletes
// ends a grant when this process hears of it, by the watch that the second Tick after the
// grant sets at the latest. Only fencing tokens close both windows.
//
// # State: why two conflicting contenders never hold
//
// A contender of this process holds if its own node is proven to exist and all that its
// rule makes it wait for are known to be gone. Three things have to be known.
//
// The contenders ahead. The horizon is a number: every node up to it is in State.list or
// gone for good. A snapshot of the directory raises it to the highest number in it, since a
// later create has a higher number. Beyond it goes only over consecutive numbers of nodes
// that are known to be in the directory: with the next number nothing came in between. A
// contender whose node is beyond the horizon waits for a list. A node whose creation is
// answered is not known to be in the same directory as the others: the directory may have
// been deleted and made again. So a read of the directory follows the creation, or the
// transaction itself deletes another node of the same directory (Effect.After). Every
// answer that names another directory has all that was known forgotten (enter).
//
// Departures. A contender of another process leaves State.list when a snapshot
// does not show it, or a watch says so. Neither can be wrong: numbers do not come back,
// and a snapshot that is older than the node does not reach up to its number. A contender
// of this process leaves with its Delete: whatever comes next in this session comes behind
// that.
//
// The own node. A node that another client has deleted lets others pass. This
// process does not learn when such a one holds, but it does learn of the departure that let
// it pass. So the proof of the own node must be newer than the last departure heard of: the
// contenders ahead were still there when the proof was made.
// provenAt is the clock of the request whose answer showed the node; it must be as late
// as doubtedAt, when a departure of another process's contender was heard of last, or a
// node of ours was missing; and as late as the Tick before last, which bounds how old
// any proof may be. An active watch is a proof that renews itself.
//
// A snapshot that shows departures, and does not show a node of ours, is a doubt of that node
// alone (its own doubtedAt): the snapshot may be older than the node, or the node be gone.
//
// A Created that comes late. If a snapshot was merged since that reaches beyond the new
// node's number, and it does not show the node, others may have passed already: the
// contender queues anew (replace). An old Created is never granted after a newer one that
// saw an empty queue, since the newer one has raised the horizon.
//
// Two nodes of one contender. The answer to a Create may be lost. The bridge looks for the
// node by its unique prefix, behind a barrier, before it repeats the Create. The name that
// is answered is the contender's, at the place that this name has; a former name is
// taken out of the list.
//
// Near the end of the numbers several nodes have the same one. Contenders then rank by
// czxid and step (rankByCzxid). A list with czxids tells those of others, and the
// last one that leaves has the directory deleted, so that its numbers begin anew.
//
// Followers. A contender that takes its place beside another of the same owner (a
// downgrade) has that one's number. Its creation checks in one transaction that the
// other's node is there, and the other stays until the creation is answered. To others,
// a node that stands at a place may have left an heir there: after its departure they
// list once more (heirs).
//
// # State: why the first in the queue comes to hold
//
// Every contender that waits depends on an answer or a watch that is under way. Beyond the
// horizon it waits for a list or for an earlier Created (lookAround). Behind contenders of
// this process it waits for their leaving, which calls settle. Behind others it has the
// nearest Permits of them watched. Without a proof of its own node it has asked for one
// (prove). Only the first of each kind ask; those behind them wait for them. A lost
// connection ends the watches, and the next Connected has all that is in the list looked at
// again. A failed list or watch refuses the waiting requests, because nothing would wake
// them (blind). A lost session sends all that wait again, in their order. A request can be
// cancelled in every stage: a node that is not known yet is deleted once it is (abandoned).
//
// # Pool
//
// A semaphore's request passes the gate, a queue with the rule [Gate], before it asks for
// leases. The gate lets in one process at a time; within the process the Pool keeps the
// order (asked). So only one request at a time has some of its leases and lacks others,
// and no two wait for each other. Leases are counted by ZooKeeper's list of them, so
// exclusion does not rest on the gate: a lease holds if fewer than Permits nodes are
// before its own. A request leaves the gate when it has all of its leases, or ends.
//
// # Lender
//
// The lock is acquired once, as a contender like any other, and lent to the owners of the
// process in their order. Exclusion against others is the State's; within the process
// holders are counted by kind (census). Requests are served in their order (waiting). The
// Lender gives a loan back that others wait for. It does so as soon as the loan is not in use,
// or when the budget of grants or of time is spent. Then it queues again behind them. The loss of a loan ends all
// grants that were made of it. Answers about an earlier loan count no more (serial).
//
// # Simple
//
// The first contender makes one node, the gate; its name excludes all others. Mark and
// gate are made and deleted by one transaction, so that the mark, whose name is unique,
// tells what became of a transaction whose answer was lost, and a repeated deletion cannot
// hit the gate of the next holder. A writer keeps the gate and waits until it sees no
// reader; a reader that sees a gate steps back. Each makes its node first and looks then, so
// of two at least one sees the other.
//
// # Faults that show that the rules are needed
//
// Each file in actors/simulation/planted takes one rule away; its README tells which of them the
// simulation has found. For State: departure-no-doubt, proof-never-stale, snapshot-no-doubt,
// missing-node-no-doubt and own-node-not-proven (the own node), directory-not-known,
// directory-unchanged and always-same-directory (the contenders ahead), late-created-waits (a
// Created that comes late), lost-answer-not-searched and lookup-without-barrier (two nodes),
// numbers-at-the-end, heirs-not-seen (followers), no-watch-on-own-node, no-look-after-reconnect
// and abandoned-stays (liveness), old-epoch and stale-reentry (sessions). For Pool:
// gate-left-early and leases-of-another-turn. For Lender: loan-never-spent and
// old-loan-counts. For Simple: any-gate-is-ours.
package lockqueue
