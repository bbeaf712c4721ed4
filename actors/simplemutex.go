package actors

import (
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// SimpleMutex is a lock that one owner holds at a time, in the simplest form that
// ZooKeeper allows: whoever makes the node <path>/lock has it, and all others watch that
// node. It is there for comparison, and for clients that can do no more. Use Mutex: it
// keeps an order, and a release wakes one waiter.
//
// What it does not give:
//   - Fairness: when the node goes, whoever is quickest has it. A waiter may wait for ever.
//   - Cheap hand-offs: each release wakes every process that waits (the herd), and each of
//     them tries to make the node and watches it again: with n of them about 3n messages
//     for each hand-off.
//   - Knowledge of who waits: there are no Participants and nobody to Revoke, and it is no
//     member of a MultiLock.
//
// All owners of this process share one waiting contender and get the lock in the order in
// which they asked. Everything else is as with a Mutex: futures, Try, owners and
// re-entry, data, loss, and the token, which is the czxid of the node. The release is
// complete for its holder before ZooKeeper has acknowledged it. The grant's Node is not
// <path>/lock, which may be another's by the time that you look, but one of a unique name
// that comes and goes in the same transactions, <path>/lock-<unique>: so Guard and Verify
// are as good as with a Mutex. <path>/lock has its name as data. Who deletes <path>/lock
// by hand lets others in before the holder knows: if that releases meanwhile, it deletes
// the next one's, too.
type SimpleMutex struct{ handle }

// SimpleMutex gives the simple mutex at path, an absolute path of ZooKeeper that nothing
// else uses. It does not block and does nothing yet: a path that is not acceptable
// shows at the first request, as ErrInvalid.
func (l *Locks) SimpleMutex(path string) *SimpleMutex {
	return &SimpleMutex{l.handle(path, simpleMutex, nil)}
}

// SimpleRWMutex is a lock that one writer or any number of readers hold at a time, in
// the simple form: the writer has the node <path>/W, each process with readers a node
// <path>/R-<unique>. It is there for comparison, as SimpleMutex is, and gives as little:
// use RWMutex.
//
// The rule is that everybody makes a node first and looks then who else is there. A
// reader that sees a writer's node deletes its own and tries again once that is gone; a
// writer that sees readers leaves its own, which keeps new ones out, and waits until they
// are gone. So they cannot go on stepping back for each other, and no writer waits for
// more than the readers of one moment; but readers may wait for ever while writers
// follow each other, and a writer for other writers. A writer wakes all waiters when it
// leaves, a reader the one writer that waits for readers.
//
// Owners of this process share a node of their kind for 100 ms at most; then it is given
// up as soon as they have released. There is neither downgrade nor upgrade: who holds the
// one lock and asks for the other gets ErrDeadlock.
type SimpleRWMutex struct{ read, write ModeLock }

// SimpleRWMutex gives the simple read-write lock at path; see SimpleMutex for the rest.
func (l *Locks) SimpleRWMutex(path string) *SimpleRWMutex {
	rw := &SimpleRWMutex{ModeLock{l.handle(path, simpleReadWrite, nil)}, ModeLock{l.handle(path, simpleReadWrite, nil)}}
	rw.read.kind, rw.write.kind = queue.Shared, queue.Exclusive
	return rw
}

// Read is the read lock.
func (rw *SimpleRWMutex) Read() *ModeLock { return &rw.read }

// Write is the write lock.
func (rw *SimpleRWMutex) Write() *ModeLock { return &rw.write }

var (
	simpleMutex     = simpleRecipe("simple mutex", queue.Mutex(), 1, "exclusive")
	simpleReadWrite = simpleRecipe("simple read-write lock", queue.SimpleReadWrite(), defaultGrants, "write", "read")
)

// simpleRecipe is a lender upon a single contender, to which it leaves neither the order
// of its owners nor their re-entry. A node is not kept: who waits for it is not known, so
// that each loan is taken to be wanted by others.
func simpleRecipe(name string, rule queue.Rule, grants int, kinds ...string) *recipe {
	local := LocalQueueConfig{Grants: grants, Time: defaultTime, Linger: defaultLinger}
	var numbers []messages.Kind
	if len(kinds) > 1 {
		numbers = readWriteNumbers
	}
	below := &recipe{name: name, rule: rule, kinds: kinds, newActor: newSimpleLock}
	return &recipe{name: name, rule: rule, kinds: kinds, kindNumbers: numbers, unlisted: true, local: &local, deps: []dependency{{recipe: below}},
		newActor: func(r *actorEntry) host.Actor { return newLocalQueue(r, local) }}
}
