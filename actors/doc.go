// Package actors is the API of actorlock: distributed locks on Apache ZooKeeper, fair,
// re-entrant by owner, with fencing tokens.
//
// [Connect] returns [Locks]. Its methods return handles for a path: a [Mutex], an [RWMutex], a
// [Semaphore] and others. Acquire returns a [Future] to select on, Lock blocks; both end in a
// [Grant], which proves that its owner holds the lock, has its fencing [Token], and notifies its
// owner of the loss. Actors of a protoactor system can send the messages of lock.proto to a
// lock's PID instead.
//
// Behind the handles of one path stands one actor per process. The path's recipe makes it, and a
// manager keeps it. The actors are in internal packages; from the API down to the rules:
//
//   - actors/internal/campaign: the actor that takes part in an election by messages.
//   - actors/internal/recipes: the actors of the recipes.
//   - actors/internal/lock: the part that all of them share: owners and their open requests.
//   - actors/internal/manager: the manager, which starts, counts and stops them.
//   - actors/internal/inspection: the queues of any lock, read from ZooKeeper without lock actors.
//   - actors/internal/check: what is wrong with a path or another input.
//   - actors/internal/lockqueue, localqueue, semaphore, lease: the state machines that
//     decide, without I/O or time.
//   - actors/internal/stack: one of these on top of others.
//   - actors/queue: the rules, kinds and node names, which users of [Custom] need, too.
//
// The page TOKENS.md shows why tokens increase.
package actors
