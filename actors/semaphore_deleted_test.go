package actors_test

import (
	"fmt"
	"slices"
	"strings"
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
	news    string        // when the process hears of the deletion
	all     bool          // all leases of the waiter are deleted, and otherwise the one with the index which
	which   int
}

// The news of a deletion comes to the process of the node when it watches the node.
const (
	longBefore = "long before the release" // seconds are enough for the watch, too
	rightThen  = "right before the release"
	afterwards = "behind the release"
)

func deletedLeases() (all []deletedLease) {
	for _, local := range []bool{true, false} {
		for _, waits := range []time.Duration{300 * time.Millisecond, 5 * time.Second} {
			for _, news := range []string{longBefore, rightThen, afterwards} {
				all = append(all, deletedLease{local, 1, waits, news, true, 0}, deletedLease{local, 2, waits, news, true, 0},
					deletedLease{local, 2, waits, news, false, 0}, deletedLease{local, 2, waits, news, false, 1})
			}
		}
	}
	return all
}

// Another client deletes leases of a request that waits for permits, and then the holder releases. The
// request holds in the end. A grant that comes before the news of the deletion is lost when the news comes.
func TestLeaseOfWaiterDeleted(t *testing.T) {
	t.Parallel()
	for _, d := range deletedLeases() {
		name := fmt.Sprintf("local %v/%d permits/waits %v/news %s/all %v, %d", d.local, d.permits, d.waits, d.news, d.all, d.which)
		t.Run(name, func(t *testing.T) { bubble(t, d.run) })
	}
}

// mayComeFirst reports whether the waiter may be granted by a deleted lease: the process has not heard of the
// deletion and hands the permits on itself, or has a lease already that it does not watch yet. The release of
// another process is heard of behind the deletion of a lease that is watched.
func (d deletedLease) mayComeFirst() bool {
	watches := d.waits > noticeLimit
	unheard := d.news == afterwards || d.news == rightThen && !watches
	return unheard && (d.local || d.permits > 1 && !watches)
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
	before := v.leases()
	<-time.After(5 * time.Second)
	waiter := request(ours)
	<-time.After(d.waits)
	deleted := v.leases()[len(before):]
	if len(deleted) != d.permits {
		v.Fatalf("%d leases wait, want %d", len(deleted), d.permits)
	}
	if !d.all {
		deleted = deleted[d.which : d.which+1]
	}
	if d.news == afterwards {
		v.Freeze(ours.Session().ID)
	}
	v.remove(deleted...)
	if d.news == longBefore {
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
	case gone && !d.mayComeFirst():
		v.Error("granted by a deleted lease, of which the process had heard")
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

// leases returns the leases of the semaphore in their order.
func (v *virtual) leases() (paths []string) {
	for _, name := range v.testLock.leases() {
		paths = append(paths, "/lock/leases/"+name)
	}
	slices.SortFunc(paths, func(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) })
	return paths
}
