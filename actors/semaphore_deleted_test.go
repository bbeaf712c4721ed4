package actors_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
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
		t.Run(name, func(t *testing.T) { bubble(t, d.run) })
	}
}

// mayBeGranted reports whether the waiter may be granted by a deleted lease: the process has not
// noticed the deletion, and hands the permits on itself or has a lease that it does not watch yet.
// A process that watches its lease notices the deletion before the release by another process.
func (d deletedLease) mayBeGranted() bool {
	watches := d.waits > noticeLimit
	unnoticed := d.notice == afterwards || d.notice == rightThen && !watches
	return unnoticed && (d.local || d.permits > 1 && !watches)
}

func (d deletedLease) run(v *virtual) {
	ours := v.locks()
	theirs := v.locks()
	holder := theirs
	if d.local {
		holder = ours
	}
	request := func(locks *actors.Locks) *actors.Future[*actors.Grant] {
		return locks.Semaphore("/lock", 2*d.permits-1).Acquire(within(v), actors.Permits(d.permits))
	}
	held := result(v, request(holder))
	before := v.leasePaths()
	<-time.After(5 * time.Second)
	waiter := request(ours)
	<-time.After(d.waits)
	deleted := v.leasePaths()[len(before):]
	if len(deleted) != d.permits {
		v.Fatalf("%d leases wait, want %d", len(deleted), d.permits)
	}
	if !d.all {
		deleted = deleted[d.index : d.index+1]
	}
	if d.notice == afterwards {
		v.Freeze(ours.Session().ID)
	}
	v.remove(deleted...)
	if d.notice == longBefore {
		<-time.After(noticeLimit)
	}
	synctest.Wait()
	held.Release()
	synctest.Wait()
	v.Thaw(ours.Session().ID)
	g := result(v, waiter)
	gone := slices.ContainsFunc(g.Nodes(), func(node string) bool { return slices.Contains(deleted, node) })
	<-time.After(noticeLimit)
	switch {
	case gone && !d.mayBeGranted():
		v.Error("granted by a deleted lease, which the process had noticed")
	case gone:
		is(v, g.Err(), actors.ErrNodeDeleted)
	default:
		must(v, g.Err())
		must(v, g.Verify(within(v)))
	}
	g.Release()
	unlock(v, result(v, request(theirs)))
	v.clean()
}

// leasePaths returns the paths of the leases in the order of their numbers.
func (v *virtual) leasePaths() (paths []string) {
	for _, name := range v.leases() {
		paths = append(paths, "/lock/leases/"+name)
	}
	slices.SortFunc(paths, bySequence)
	return paths
}
