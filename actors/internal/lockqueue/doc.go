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
// are proven to exist. Next a request on its way: state.go, the State and Step; acquire.go, from its
// Acquire to its Created; grant.go, which contender holds; wait.go, which ones wait, and what wakes
// them; session.go, sessions and their loss. Then what these call: list.go, when the directory is
// listed; merge.go, what a list changes; rule.go, questions to the rule; requests.go and leave.go, the
// ends of requests and of entries; gone.go, own nodes that others deleted; reconnect.go; failed.go;
// close.go. Then what few locks need: reenter.go, tries.go, numberend.go, delay.go, contention.go,
// revoke.go. incarnation.go makes the names of nodes; invariants.go says what holds between
// two events.
//
// testdata has scripts that read as stories; the first to read are alone, handoff, others,
// several-ahead, session, readwrite, downgrade and late-created. testdata/README.md explains how to
// read them.
//
// The rest of this page is the argument. It names fields, and is easier after the files.
//
// # Guarantees of ZooKeeper and the bridge
//
//   - Writes. The zxids of all writes are in one order. ZooKeeper executes a transaction as a whole
//     or not at all, and all nodes that it makes have its zxid as czxid.
//   - Numbers. Every creation in a directory takes the next number, also the creation of a node without a
//     number in its name. The last number is 2^31-1, and several nodes may have it. A directory that was deleted
//     and made again begins at 0 and has a greater czxid. A directory with a node in it is not deleted.
//   - Reads. The requests of one session are answered in their order. A read shows all writes of its
//     session that came before it, and never a state older than the session has read before. It may
//     show a state that is older than what other sessions have read.
//   - Watches. A session hears of a change that it watches before it reads that change or anything
//     later. A lost connection ends this until the watches are set again.
//   - Sessions. The nodes of a session stay until they are deleted or until the session ends. A
//     session does not end before the bridge's deadline (package zkbridge). At the deadline the
//     bridge says Lost, and all grants of the session end.
//
// Two things are trusted: the last point above, and that no client deletes the node of another's grant, or of a
// waiter to which a contender of the same process is about to hand the lock on. If a client does so, this process
// hears of the deletion by an answer to a watch or a list that it asks for within two Ticks, while there is a
// connection to a server that is up to date; only then the grant ends. Only fencing tokens protect if the trust is
// wrong.
//
// # Why two conflicting contenders never hold
//
// A contender of this process is granted if its own node is proven to exist and all that its rule
// makes it wait for are known to be gone.
//
// The contenders ahead. Every contender up to completeThrough is in the list or gone for good. A
// list of the directory raises completeThrough to the highest number in it, since a later create
// has a higher number. Beyond that it goes only over consecutive numbers of nodes that are known to
// be in the directory: between two such numbers no contender came. A contender beyond
// completeThrough waits for a list. The directory may be deleted and made again before a node is created,
// so the creation alone does not show that the node is in the same directory as the others. A read of the
// directory after the creation shows that, and so does a transaction that creates the node and deletes one that is known to be in
// the directory (Effect.After). The State forgets all that it knew when an answer names another directory
// (enterDirectory).
//
// Departures. A contender of another process leaves the list when a list of the directory does not show it, or a
// watch reports its deletion. Neither can be wrong: numbers do not come back, and a list removes only contenders up
// to the highest number in it, which a list older than the node does not reach. (A list older than a downgrade of another
// process may remove it, but shows the contender at whose place it is: see Downgrades.) A contender of this process leaves
// the list with its DeleteNode: its owner has released, other processes wait until the node is deleted, and a list
// that still shows the node does not bring it back (recogniseOwn).
//
// The own node. If another client deletes the node, later contenders do not wait for it any more, and hold once
// enough others ahead of them have left. This process hears of these departures, but not of the new holders. So the
// proof of the own node must be newer than the last departure heard of: the node then existed after that departure,
// and kept later contenders from holding. provenAt is the clock of the request whose answer showed the node, or of
// the event by which a watch did. Three doubts must not be later than provenAt (proof.go says when each is set).
// allDoubtedAt comes of a departure of another process's contender, of a missing node of this process, and of a
// connection that is back. (A departure within this process is no doubt, by the second trust above.) staleBefore
// bounds how old any proof may be; a Created that is Recent is not too old, however long its CreateNode has
// waited. hiddenAt comes of a list that shows departures and not this node: either the list is older than the
// node, or the node is gone. An active watch is a proof that renews itself. The transaction
// that makes a held marker checks the node, so its answer is a proof, too. If that proof has become too old on its
// way, the held marker is written again (heldMarkerMade).
//
// A late Created. If a list that reaches beyond the new node's number was merged before, and does
// not show the node, others may have passed already: the contender queues again (requeue).
// The Created of two nodes of this process may come against the order of their numbers. If another client has
// deleted the node with the lower number, a list shows nothing ahead of the node with the higher number, and that
// one may be granted first. completeThrough is then beyond the lower number, so its Created is late, too.
//
// Two nodes of one contender. The answer to a CreateNode may be lost. The bridge looks for the node
// by its unique prefix, behind a barrier, before it repeats the create. The contender takes the
// name in the answer, and its place. If a list has shown the node of the first create, that name leaves the list.
//
// The end of the numbers. No contender of this process holds by the last number, or by a negative
// one, which counts as a later one: it queues again (settle). All others have numbers of their own.
//
// Downgrades. A contender that takes its place beside another of the same owner has that one's
// number. Its creation checks in one transaction that the other's node exists, and the other stays
// until the creation is answered. A contender of another process may have left a downgrade at its
// place when it went: this process lists once more before it passes that place (unseenDowngrades).
//
// Tokens of conflicting grants increase: a later holder's node was created later, so its czxid is
// greater, or its step within one transaction. A downgrade keeps the token of its owner's grant.
//
// # Why the first in the queue comes to hold
//
// Every waiting contender depends on an answer or a watch that is under way. Beyond completeThrough it waits
// for a list or for an earlier Created (listGap). Behind contenders of this process it waits for them to leave,
// which calls grantEligible. Behind others it asks for watches on the nearest Permits of them, and on one more
// (awaitBlockers).
// Without a proof of its own node it has asked for one (prove). Only the first of each kind ask; those behind
// wait for them. A lost connection ends the watches, and the next Connected has all that is in the list looked
// at again. A failed read refuses the waiting requests, because nothing would wake them (readFailed). A lost
// session has all that wait created again, in their order, except downgrades and atomic creates, which are
// refused. (The shell cancels tries, and requests with fail_on_session_loss.) A request can be cancelled in
// every stage: a node that is not known yet is deleted once it is (abandoned).
//
// Near the end of the numbers a new request waits outside, without a node (numberend.go). It asks
// for a list, and so does each Tick. An empty directory is deleted, and all that wait outside go
// on. They also go on if the directory is missing or another one: another process has deleted it.
// Holders count as contended meanwhile. If nothing leaves the directory for some Ticks, or if it
// cannot be deleted, they go on all the same, and use up the numbers; they are refused once few
// numbers are left. So the wait ends, unless the directory has fewer children each time.
//
// # Speed
//
// A hand-off among many processes is one event. A contender watches its own node, the nearest blocker and the one before
// that (for Permits of more than one, as many more). When the one before the nearest leaves, the contender lists the
// directory, while the nearest holds or is about to. The departure of the nearest then lets it hold (watchBlockers). One
// message sets the watches on nodes that this process is known to be able to read; other nodes are read.
//
// BenchmarkHandOff: a hand-off within the process costs the same with 10 and with 10,000 waiting. One
// list and one watch serve all waiting contenders of a lock: only the first of each kind ask
// (nextToHold). A contender whose number follows on completeThrough needs no list. A Step allocates
// nothing for its event; ReleaseMemory frees what an idle lock keeps.
//
// # Faults that show that the rules are needed
//
// Each patch in actors/simulation/planted takes one rule away; actors/simulation/README.md says
// which check finds it. The own node: departure-no-doubt, proof-never-stale, snapshot-no-doubt,
// missing-node-no-doubt, own-node-not-proven, own-deletion-unheard, gone-create-no-doubt. The
// contenders ahead: directory-not-known, directory-unchanged, always-same-directory,
// one-permit-too-many. A late Created: late-created-waits. Two nodes: lost-answer-not-searched,
// lookup-without-barrier. The end of the numbers: numbers-at-the-end, outside-not-woken,
// entered-beyond-reserve. Downgrades: unseen-downgrade-ignored. Liveness: no-watch-on-own-node,
// watches-kept, waiter-not-woken, abandoned-stays. Tries: try-refused-by-old-news. Sessions and
// re-entry: old-epoch, stale-reentry. The lock-delay: lock-delay-skipped.
package lockqueue
