// Package actors is the API of actorlock: distributed locks on Apache ZooKeeper, fair,
// re-entrant by owner, with fencing tokens.
//
// [Connect] returns [Locks]. Its methods return handles for a path: a [Mutex], an [RWMutex], a
// [Semaphore] and others. Acquire returns a [Future] to select on, Lock blocks; both end in a
// [Grant], which proves that its owner holds the lock, has its fencing [Token], and notifies its
// owner of the loss. Actors of a protoactor system can send the messages of lock.proto to a
// lock's PID instead.
//
// Behind the handles of one path stands one actor per process. The
// path's recipe makes it, and a manager keeps it. The actors are in internal packages; from the API down to the
// rules:
//
//   - actors/internal/campaign: the actor that takes part in an election by messages.
//   - actors/internal/recipes: the actors of the recipes.
//   - actors/internal/shell: the part that all of them share: owners, their open requests, the
//     manager.
//   - actors/internal/lockqueue, localqueue, semaphore: the state machines that
//     decide, without I/O or time.
//   - actors/queue: the rules, kinds and node names, which users of [Custom] need, too.
//
// The files of this package, in reading order: actors.go (Locks and Config), mutex.go,
// rwmutex.go, semaphore.go, multilock.go and custom.go (the handles), delay.go and
// localqueue.go (options of handles), election.go, campaign.go and singleton.go (leaders, by the
// handle of a mutex), options.go and errors.go (of requests), handle.go (what all handles share),
// acquisition.go (one request of Go code, an owner to the lock's actor), prepare.go,
// abandon.go, answers.go and notifications.go (the rest of it), leak.go and stack.go (dropped futures
// and grants), grant.go, token.go and generation.go, fence.go (checks
// of grants and tokens), participants.go, inspect.go, observe.go and find.go (queues),
// revoke.go and sharedcount.go,
// open.go, stats.go and health.go (what a process has), first.go and drain.go.
//
// # Why tokens increase
//
// Two grants conflict if the rule of the recipe does not let them be held at one time; two grants
// of a semaphore conflict if their permits together are more than it has. Of two conflicting
// grants of one path the later has the greater [Token], by whichever recipes their requests were
// made. In short: a token says when the transaction created the node, each lock grants
// conflicting contenders in the order of their nodes, and a request that needs several nodes
// either has all of them from one transaction, or has the token of the last one, and conflicting
// requests are granted in the order of their last nodes.
//
// The order of nodes. A directory numbers its contenders in the order in which transactions
// create them, the order of their czxids; within one transaction in the order of the creates, the
// order of step. If the directory is deleted and created again, the numbers begin anew
// and czxids go on; no contender holds by the last number, which several may have. A node is
// created once: a contender that has lost its node gets a new one behind all others.
//
//   - Mutex: a contender holds when its node is the first.
//   - Read-write lock: a writer holds when its node is the first, a reader when no writer's node
//     is before its own. So a writer's token is greater than those of all earlier readers and
//     writers, a reader's greater than those of all earlier writers. A downgraded reader keeps
//     its writer's token. Its node has the writer's number and a later czxid, and writers wait for
//     it by that number. The nodes of all contenders behind it came behind the writer's node, so
//     their tokens are greater than the one that the reader keeps.
//   - Custom: of two conflicting contenders, the later waits for the node of the earlier. A rule
//     by which neither of two kinds waits for the other has no order between them.
//   - Semaphore: a request has the token of the lease that it created last. One process at a time
//     creates leases, while it holds the request queue, and the next process creates its own when
//     all leases of the earlier one are granted. Within a process the leases of a request are
//     one atomic create, or several in a row if they do not fit into one transaction (64 leases,
//     512 KiB). Leases are granted in the order of their nodes. If a lease of an earlier
//     request was deleted and made again, a later request may be granted a lease before its turn.
//     It then releases that lease and creates a new one. So if two requests do not fit beside
//     each other, all leases of the later came after all of the earlier's. A multi-lock has one
//     lease of a semaphore. It passes the request queue, too, but does not wait for a turn within
//     its process, so its lease may come between those of a request that needs several
//     transactions. Still, of two requests that do not fit beside each other, the one that is
//     granted later has the later last lease, since leases are granted in the order of their
//     nodes. Requests that fit beside each other do not conflict, and their tokens need not
//     increase.
//   - Shared permits: as long as the number does not grow, the argument for semaphores holds. When
//     the number grows, present holders do not conflict with the contenders that come in. When it
//     shrinks, present holders go on, and the next contender waits until all holders that it does
//     not fit beside are gone.
//   - Local queue: step counts the grants that one node serves, and starts at the node's own step times 2^20;
//     conflicting grants by one node follow one another. Grants by another node have a later
//     czxid.
//   - Lock-delay: a mutex, whose delay only makes a contender wait longer.
//   - Multi-lock: one transaction creates the nodes of all members; or, with semaphores, the
//     leases and the nodes of all members, when the request has passed all request queues. All of
//     these nodes have the same czxid and step, those of the last create, so the token is the
//     right one in each queue by the argument for its recipe. Creates that come before them in the
//     transaction have a smaller step, creates behind them a greater one.
//   - Re-entry: it has the token of the node that it enters, or of all nodes of the multi-lock.
//
// Tokens of locks at different paths cannot be compared, except those of a multi-lock, which has
// one token for all its members.
package actors
