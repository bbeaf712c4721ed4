package actors

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/messages"
)

// Owner names the owner of a request. A further request of the owner that holds a re-entrant lock
// is granted at once (re-entry); other owners of the process wait as contenders of other processes
// do. Semaphores have no re-entry: see Semaphore. A name has 1,024 bytes at most, or is ErrInvalid.
type Owner string

// Option sets something for one request.
type Option interface {
	setRequest(*messages.Acquire) error
}

type requestOption func(*messages.Acquire) error

func (set requestOption) setRequest(m *messages.Acquire) error { return set(m) }

// plainOption is an option that any request may have.
type plainOption func(*messages.Acquire)

func (set plainOption) setRequest(m *messages.Acquire) error {
	set(m)
	return nil
}

// WithOwner makes the request one of the named owner. Without it each request has an owner of
// its own: a second request that conflicts with the first waits for it, even in the same goroutine.
// After some seconds the log then has a hint, and so has the error of WithTimeout.
//
// After the loss of a grant the owner's further requests fail with the reason of the loss until
// the owner has called Release on the lost grant: otherwise a re-entry could turn into a new
// grant unnoticed by the part of the program that relies on the old one. (Not those of a semaphore:
// it has no re-entry.)
//
// An owner that waits for a MultiLock or holds it enters only that one again: see MultiLock.
func WithOwner(owner Owner) Option {
	return requestOption(func(m *messages.Acquire) error {
		if owner == "" {
			return check.Invalid("owner is empty: it must be a name, or leave WithOwner out")
		}
		m.Owner = string(owner)
		return nil
	})
}

// WithTimeout ends the request with ErrTimedOut when it has waited for d, which must be
// positive. The end of the context ends it as well.
func WithTimeout(d time.Duration) Option {
	return requestOption(func(m *messages.Acquire) error {
		if d <= 0 {
			return check.Invalid(fmt.Sprintf("timeout %v: it must be positive; use Try for not waiting at all", d))
		}
		m.WaitNanos = int64(d)
		return nil
	})
}

// WithData sets the data of the contender's node, which others can read: 512 KiB at most. They are
// in place of the record that a node has otherwise, see Config.OmitHolder; empty data are as none.
// A re-entry has no node of its own, so its data is dropped.
func WithData(data []byte) Option {
	return plainOption(func(m *messages.Acquire) { m.Data = slices.Clone(data) })
}

// Revocable notifies the holder at once when another client asks it to release (Grant.Revoked),
// and when its node is deleted. It costs a read for each grant. Without it, and with a LocalQueue,
// the holder is notified once it has held the lock for a second or two.
func Revocable() Option {
	return plainOption(func(m *messages.Acquire) { m.Revocable = true })
}

// Try ends the request with ErrNotAcquired rather than let it wait for other contenders, and
// with ErrSuspended rather than let it wait for a connection to ZooKeeper, whether the connection
// is lost before or during the request. The request may still wait for ZooKeeper's answer, until
// the context ends.
func Try() Option {
	return plainOption(func(m *messages.Acquire) { m.Try = true })
}

// HoldAtMost ends the grant with ErrHoldExpired when the lock has been held for d, which must be
// positive, whatever the holder does. Grant.Revoked is closed when three quarters of d are over, so
// that the holder can finish its work and release. At the end Err, Done and the contexts of the
// grant change first, and then the node is deleted, unless it serves other grants. The time for
// which the machine is suspended counts: the first Err after it shows the end, and the rest follows
// within a second. As after any loss, only a resource that checks tokens keeps a holder that goes on
// from doing harm. A re-entry is a grant of its own, by which the owner goes on to hold the lock.
// After the end a named owner is refused the lock until it calls Release, as WithOwner says of a
// loss.
func HoldAtMost(d time.Duration) Option {
	return requestOption(func(m *messages.Acquire) error {
		if d <= 0 {
			return check.Invalid(fmt.Sprintf("HoldAtMost %v: it must be positive; leave the option out to hold without limit", d))
		}
		m.HoldNanos = int64(d)
		return nil
	})
}

// FailOnSessionLoss ends the request with ErrSessionLost when the ZooKeeper session is lost while
// the request waits, as Curator's acquire fails then. Without it the request queues again in the
// next session, behind all others.
func FailOnSessionLoss() Option {
	return plainOption(func(m *messages.Acquire) { m.FailOnSessionLoss = true })
}

// Permits asks for n permits of a semaphore: from 1 to the number that the semaphore has. All n
// permits are granted together, or none. Without Permits a request asks for one. With SharedPermits
// n may be greater than the present number: the request then waits until the number has grown.
func Permits(n int) Option {
	return requestOption(func(m *messages.Acquire) error {
		if n < 1 || n > math.MaxInt32 {
			return check.Invalid(fmt.Sprintf("permits %d: it must be from 1 to %d", n, math.MaxInt32))
		}
		m.Permits = uint32(n)
		return nil
	})
}

// LockDelay keeps a mutex closed for d after a holder that did not release it: a holder whose
// session was lost, whose process ended or closed its Locks, whose node was deleted, or whose time
// was over by HoldAtMost. Its last writes may still be under way. d is the time for them to arrive,
// if the protected resource cannot check tokens. After a release the next contender holds at once.
// d must be positive and at most a minute. The delay counts from when the next contender notices
// the end of the holder.
//
// All clients of the lock should have the same delay. Clients without a delay, and those of other
// libraries, share the lock all the same, but neither wait nor make others wait. They leave the
// held marker as it is, so that a later contender may wait for nothing.
//
// A holder is known by the held marker, the node <path>-__held__, which it creates before it is
// granted the lock and deletes together with its own node. That is one write more for each
// acquire, and rules out hand-offs within a process without a round trip. A Close that overtakes
// a release is no release: wait for Unlock. After an unclean end the marker stays until a holder
// releases again; deleting it by hand spares later contenders the delay. So the next contender also
// waits if a process ends, or loses its session, between the marker and the grant.
//
// While the delay lasts requests wait as they do for other contenders: they can be cancelled and
// time out, and Try does not wait. The delay then goes on without them.
func LockDelay(d time.Duration) LockOption { return lockOption(recipes.Delay(d)) }

// LocalQueueConfig bounds how long the owners of one process share a node; see LocalQueue. Its
// zero value works. A lock server accepts times of a minute at most.
type LocalQueueConfig struct {
	// Grants bounds the grants that the process makes in a row by one node while other processes
	// wait. 0 means 1000.
	Grants int
	// Time bounds how long the process makes grants by one node while other processes wait, counted
	// from when it got the node. 0 means 100 ms. A single grant lasts as long as its holder likes.
	Time time.Duration
	// Linger is how long the process keeps a node that no contender wants, here or elsewhere; it
	// may be up to twice as long. 0 means 1 s.
	Linger time.Duration
}

// LocalQueue has all owners of this process share one node in the lock's queue, which they pass on
// between them in the order of their requests. Acquiring then mostly needs no ZooKeeper at all. The
// price is fairness: the lock is fair within the process, and fair between processes, but not
// across. Owners of this process may pass contenders that came earlier, within the bounds of
// LocalQueueConfig. When Grants or Time are used up and another contender waits, the process queues
// again, at the end. A node that is not in use is released as soon as another contender appears, or
// after Linger. A client that asks for the lock (see Locks.Revoke) ends Grants and Time, whether or
// not it waits: the process releases the node after its present holders, which all hear of it.
//
// The readers of a RWMutex share a read node, and its writers pass on a write node. Both kinds
// wait in one order, the order of arrival, and Grants and Time count for both together. A process
// that has the write node and comes to a reader makes its read node beside it, at the same place
// in the queue, as a downgrade does. That takes one round trip; then the process keeps both
// nodes, and changes between reading and writing without ZooKeeper. (Readers that hold by the
// write node would be simpler, but would keep readers of other processes out for as long as the
// longest of them reads; queueing for a read node would make the process wait at each change.)
// The process releases the write node when others wait and it has only readers left: at once if
// no writer waits here, else when Grants or Time are used up. To get from the read node to the
// write node the process queues, once its readers are done.
//
// A grant differs from one without a local queue:
//   - Its node may exist before it and after it. So Verify, Guard and VerifyToken show whether
//     this process has the lock, not which of its owners. The token is the grant's own, and grows
//     with each: the resource's check of tokens works as ever. (Readers that hold beside each
//     other may come to share a token, after a million grants by one node.)
//   - If one of the process's two nodes is lost, so are the grants by the other.
//   - The node has the data, as set by WithData, of the request for which it was made.
//   - A release is complete when the next owner of this process may hold the lock; it does not
//     wait for ZooKeeper.
//   - A request to read that is a Try is also refused while the process waits for its read node
//     for requests that are no Try.
//
// A Mutex and a RWMutex can have a local queue.
func LocalQueue(c LocalQueueConfig) LockOption {
	return lockOption(recipes.LocalQueue(manager.LocalQueueConfig(c)))
}

// RequireDirectory has requests end with ErrNoDirectory while the directory at the lock's path does
// not exist. Without it the first request makes the directory. It is for locks in a directory that
// the program makes and deletes together with the object that the lock protects: a request that
// comes after the deletion, or waited meanwhile, does not make the directory again. (A waiter hears
// of the deletion as soon as its node is deleted. A holder's grant ends with ErrNodeDeleted.) A
// request in an existing directory costs nothing more. Make the directory as a persistent node:
// ZooKeeper deletes a container while no contender is in it.
//
// A local queue goes on with its node until it hears of the deletion. The node of a LockDelay, whose
// path is the lock's and "-__held__", is beside the directory: delete it, too.
//
// The directories of a semaphore below its path are made as ever, but not the node of SharedPermits
// in a directory that is missing. Near the end of the sequence numbers, at 2^31, the lock does not
// delete the directory to begin anew: requests then end with ErrSequenceExhausted. A multi-lock
// fails if a member with this option does, and makes no node then. The campaign of an Election ends
// with ErrNoDirectory. Custom has no such option.
func RequireDirectory() DirectoryOption { return directoryOption{lockOption(recipes.RequireDirectory)} }

// DirectoryOption is an option of a lock and of an election: RequireDirectory.
type DirectoryOption interface {
	LockOption
	ElectionOption
}

type directoryOption struct{ lockOption }

func (d directoryOption) setElection(e *Election) error {
	e.requires = []LockOption{d}
	return nil
}
