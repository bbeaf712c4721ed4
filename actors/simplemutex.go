package actors

import "github.com/actorlock/actorlock/actors/internal/recipes"

// SimpleMutex is a lock that one owner holds at a time, in the simplest form that ZooKeeper
// allows: the client that creates the node <path>/lock has it, and all others watch that node. It
// exists for comparison, and for clients that can do no more. Use Mutex: it keeps an order, and a
// release wakes one waiter.
//
// It lacks:
//   - Fairness: when the node goes, the quickest client has it. A waiter may wait for ever.
//   - Cheap hand-offs: each release wakes every process that waits (the herd), and each of them
//     tries to create the node and watches it again: with n of them about 3n messages for each
//     hand-off.
//   - Knowledge of the waiters: there are neither Participants nor Revoke, and it is no member of
//     a MultiLock.
//
// All owners of this process share one waiting contender and get the lock in the order of their
// requests. Everything else is as with a Mutex: futures, Try, owners and re-entry, data, loss,
// and the token, which is the czxid of the node. The release is complete for its holder before
// ZooKeeper has acknowledged it.
//
// The grant's Node is not <path>/lock, which may be another client's by the time that you look.
// It is the owner node <path>/lock-<unique>, which is created and deleted in the same
// transactions: so Guard and Verify are as good as with a Mutex. <path>/lock has the name of the
// owner node as data. A client that deletes <path>/lock by hand lets others in before the holder
// knows; a holder that releases meanwhile deletes the next one's node, too.
type SimpleMutex struct{ handle }

// SimpleMutex returns the simple mutex at path, an absolute path of ZooKeeper that nothing else
// uses. It does not block or ask ZooKeeper: an unacceptable path shows at the first request, as
// ErrInvalid.
func (l *Locks) SimpleMutex(path string) *SimpleMutex {
	return &SimpleMutex{l.handle(path, recipes.SimpleMutex, 0, nil)}
}

// SimpleRWMutex is a lock that one writer or any number of readers hold at a time, in the simple
// form: the writer has the node <path>/W, each process with readers a node <path>/R-<unique>. It
// exists for comparison, as SimpleMutex does, and lacks the same: use RWMutex.
//
// The rule is that each client first creates a node and then looks for the other's. A reader that
// sees a writer's node deletes its own and tries again once that is gone; a writer that sees
// readers leaves its own, which keeps new readers out, and waits until they are gone. So they
// cannot go on stepping back for each other, and no writer waits for more than the readers of one
// moment; but readers may wait for ever while writers follow each other, and a writer for other
// writers. A writer wakes all waiters when it leaves, a reader the one writer that waits for
// readers.
//
// Owners of this process share a node of their kind for 100 ms at most; then it is given up as
// soon as they have released. There is neither downgrade nor upgrade: an owner that holds the one
// lock and asks for the other gets ErrDeadlock.
type SimpleRWMutex struct{ modes }

// SimpleRWMutex returns the simple read-write lock at path; see SimpleMutex for the rest.
func (l *Locks) SimpleRWMutex(path string) *SimpleRWMutex {
	return &SimpleRWMutex{l.modes(path, recipes.SimpleReadWrite, nil)}
}
