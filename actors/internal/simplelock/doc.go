// Package simplelock is the state machine of one process's contender for a lock that is one node
// instead of a queue. It does no I/O and knows neither time nor contexts: its ContenderActor performs what it asks
// for. The recipe exists for comparison: each release wakes all contenders.
//
// # Rules
//
// One contender at a time has the node of a fixed name, the lock node. The others watch it, and try
// again once it is gone.
//
//   - A writer makes the lock node together with a node of a unique name, its owner node, and
//     deletes both together. So a repeated deletion cannot hit the lock node of the next holder.
//   - An attempt that fails in whatever way, or whose outcome is unknown, goes on like a release: the
//     contender deletes the nodes that may exist, and then begins anew. If one of them is missing, it
//     reads which of them exist and are its own, and deletes these.
//   - Readers, if the lock has any, have an owner node only. Each contender makes its nodes first
//     and lists the directory then, so of a reader and a writer at least one sees the other. A
//     reader that sees the lock node deletes its owner node and waits for the lock node to go. A
//     writer that sees readers keeps the lock node and waits for them to go. So no two give way to
//     each other, and writers come first.
//   - The lock node is this contender's if both nodes have one czxid. Another client may
//     delete either node at any time: then a holder loses the lock.
//   - The token is the generation and the czxid of the owner node. The nodes of a later holder that
//     conflicts are made later, so tokens increase.
//
// # Files
//
// To be read in this order: contender.go, the ContenderActor, the fields, stages and decisions; step.go, what the
// actor calls; invariants.go, what holds between two calls.
//
// # Faults that show that the rules are needed
//
// One of the faults in actors/simulation/planted: any-lock-node-is-ours.
package simplelock
