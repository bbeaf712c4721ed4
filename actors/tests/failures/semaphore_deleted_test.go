package failures

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// deletedLease is a case of TestLeaseOfWaiterDeleted.
type deletedLease struct {
	local   bool          // the holder is in the process of the waiter
	permits int           // of each request; one permit is free if they are 2
	waits   time.Duration // until the deletion: the process watches its own lease from the second tick on at the latest
	notice  string        // when the process learns of the deletion
	all     bool          // all leases of the waiter are deleted, and otherwise the lease with the index
	index   int
}

// A process learns of the deletion of its node while it watches the node.
const (
	longBefore = "long before the release" // by seconds, in which the watch is set, too
	rightThen  = "right before the release"
	afterwards = "after the release"
)

func deletedLeases() (all []deletedLease) {
	for _, local := range []bool{true, false} {
		for _, waits := range []time.Duration{300 * time.Millisecond, 5 * time.Second} {
			for _, notice := range []string{longBefore, rightThen, afterwards} {
				all = append(all, deletedLease{local, 1, waits, notice, true, 0}, deletedLease{local, 2, waits, notice, true, 0},
					deletedLease{local, 2, waits, notice, false, 0}, deletedLease{local, 2, waits, notice, false, 1})
			}
		}
	}
	return all
}

// Another client deletes leases of a request that waits for permits, and then the holder releases.
// The request is granted in the end. A grant before the notice of the deletion is lost at the
// notice.
func TestLeaseOfWaiterDeleted(t *testing.T) {
	t.Parallel()
	for _, d := range deletedLeases() {
		name := fmt.Sprintf("local %v/%d permits/waits %v/notice %s/all %v, %d", d.local, d.permits, d.waits, d.notice, d.all, d.index)
		t.Run(name, func(t *testing.T) { locktest.Bubble(t, d.run) })
	}
}

// mayBeGranted reports whether the waiter may be granted by a deleted lease: the process has not
// noticed the deletion, and hands the permits on itself or has a lease that it does not watch yet.
// A process that watches its lease notices the deletion before the release by another process.
func (d deletedLease) mayBeGranted() bool {
	watches := d.waits > locktest.NoticeLimit
	unnoticed := d.notice == afterwards || d.notice == rightThen && !watches
	return unnoticed && (d.local || d.permits > 1 && !watches)
}

func (d deletedLease) run(v *locktest.Virtual) {
	ours := v.Locks()
	theirs := v.Locks()
	holder := theirs
	if d.local {
		holder = ours
	}
	request := func(locks *actors.Locks) *actors.Future[*actors.Grant] {
		return locks.Semaphore("/lock", 2*d.permits-1).Acquire(locktest.Within(v), actors.Permits(d.permits))
	}
	held := locktest.Result(v, request(holder))
	before := leasePaths(v)
	<-time.After(5 * time.Second)
	waiter := request(ours)
	<-time.After(d.waits)
	deleted := leasePaths(v)[len(before):]
	if len(deleted) != d.permits {
		v.Fatalf("%d leases wait, want %d", len(deleted), d.permits)
	}
	if !d.all {
		deleted = deleted[d.index : d.index+1]
	}
	if d.notice == afterwards {
		v.Freeze(ours.Session().ID)
	}
	v.Remove(deleted...)
	if d.notice == longBefore {
		<-time.After(locktest.NoticeLimit)
	}
	synctest.Wait()
	held.Release()
	synctest.Wait()
	v.Thaw(ours.Session().ID)
	g := locktest.Result(v, waiter)
	gone := slices.ContainsFunc(g.Nodes(), func(node string) bool { return slices.Contains(deleted, node) })
	<-time.After(locktest.NoticeLimit)
	switch {
	case gone && !d.mayBeGranted():
		v.Error("granted by a deleted lease, which the process had noticed")
	case gone:
		locktest.Is(v, g.Err(), actors.ErrNodeDeleted)
	default:
		locktest.Must(v, g.Err())
		locktest.Must(v, g.Verify(locktest.Within(v)))
	}
	g.Release()
	locktest.Unlock(v, locktest.Result(v, request(theirs)))
	v.Clean()
}

// leasePaths returns the paths of the leases in the order of their numbers.
func leasePaths(v *locktest.Virtual) (paths []string) {
	for _, name := range v.Leases() {
		paths = append(paths, "/lock/leases/"+name)
	}
	slices.SortFunc(paths, locktest.BySequence)
	return paths
}
