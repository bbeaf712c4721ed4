package semaphore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// effectsOf returns the effects of a State, in short.
func effectsOf(p *State) string {
	var all []string
	for _, o := range effectsSince(p) {
		switch o.kind {
		case "EnterRequestQueue":
			all = append(all, fmt.Sprintf("enter queue %d", o.serial))
		case "LeaveRequestQueue":
			all = append(all, fmt.Sprintf("leave queue %d", o.serial))
		case "AcquireLease":
			all = append(all, fmt.Sprintf("ask lease %d", o.serial))
		case "WithdrawLease":
			all = append(all, fmt.Sprintf("leave lease %d", o.serial))
		case "ReportTurn":
			all = append(all, fmt.Sprintf("pass %d", o.id))
		case "ReleaseLease":
			all = append(all, fmt.Sprintf("return lease %d", o.serial))
		case "Grant":
			all = append(all, fmt.Sprintf("grant %d", o.id))
		case "Refuse":
			all = append(all, fmt.Sprintf("refuse %d: %d", o.id, o.reason))
		case "Lose":
			all = append(all, fmt.Sprintf("lose %d: %d", o.id, o.reason))
		case "ConfirmRelease":
			all = append(all, fmt.Sprintf("released %d", o.id))
		case "RequestRevoke":
			all = append(all, fmt.Sprintf("revoke %d", o.id))
		}
	}
	return strings.Join(all, ", ")
}

// calls checks the effects of a State after each call.
type calls struct {
	t *testing.T
	*State
}

func (s calls) want(want string) {
	s.t.Helper()
	if got := effectsOf(s.State); got != want {
		s.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (s calls) granted(serials ...uint64) {
	for _, serial := range serials {
		s.Granted(Lease{Serial: serial, Czxid: int64(serial)})
	}
}

func TestState(t *testing.T) {
	s := calls{t, New(&recorder{}, 3, true)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 2})
	s.Acquire(requests.Incoming{ID: 2, Permits: 2})
	s.want("enter queue 1, enter queue 2")
	s.granted(1, 2) // both have passed the request queue: one process
	s.want("ask lease 3, ask lease 4, ask lease 5, ask lease 6")
	s.granted(3)
	s.want("")
	s.granted(4)
	s.want("leave queue 1, grant 1")
	s.granted(5)
	s.Release(1)
	s.want("return lease 3, return lease 4")
	s.Cancel(1, requests.Cancelled) // too late
	s.Released(4)
	s.want("")
	s.Released(3)
	s.want("released 1")
	s.granted(6)
	s.want("leave queue 2, grant 2")
	s.Lost(6, requests.NodeDeleted)
	s.want("leave lease 5, leave lease 6, lose 2: 5")
	s.Release(2)
	s.want("refuse 2: 7")
	if !s.Idle() {
		t.Error("it is not idle")
	}
}

// A node that was deleted is made again behind the nodes of the next request: that request releases the
// leases that it is granted before its turn.
func TestOutOfTurn(t *testing.T) {
	s := calls{t, New(&recorder{}, 4, true)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 3})
	s.Acquire(requests.Incoming{ID: 2, Permits: 3})
	s.granted(1, 2)
	effectsOf(s.State)
	s.granted(3, 4) // 5 comes to stand behind 6, 7 and 8
	s.granted(6)
	s.want("leave lease 6, leave lease 7, leave lease 8, ask lease 9, ask lease 10, ask lease 11")
	s.granted(7) // the grant of a withdrawn request is ignored
	s.granted(5)
	s.want("leave queue 1, grant 1")
	s.granted(9)
	s.Release(1)
	s.granted(10, 11)
	s.want("return lease 3, return lease 4, return lease 5, leave queue 2, grant 2")
}

func TestRefusals(t *testing.T) {
	s := calls{t, New(&recorder{}, 3, true)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 2, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 2, Owner: "a", Try: true})
	s.Acquire(requests.Incoming{ID: 3, Permits: 2, Try: true})
	s.Acquire(requests.Incoming{ID: 4, Permits: 1, Owner: "a"})
	s.want("enter queue 1, refuse 2: 16, refuse 3: 1, enter queue 2")
	s.Refused(1, requests.NotAcquired)
	s.want("refuse 1: 1")
	s.Acquire(requests.Incoming{ID: 5, Permits: 2, Owner: "a"})
	s.granted(2, 3)
	s.want("enter queue 3, ask lease 4, ask lease 5, ask lease 6")
	s.Refused(5, requests.NodeDeleted)
	s.want("leave lease 6, leave queue 3, refuse 5: 5")
	s.Leave()
	s.want("leave queue 2, leave lease 4")
}

// No lease is asked for before the number of permits is known, and then not more than needed.
func TestResize(t *testing.T) {
	s := calls{t, New(&recorder{}, -1, false)}
	for id := range requests.ID(20) {
		s.Acquire(requests.Incoming{ID: id + 1, Permits: 1, Owner: "a", Try: id == 9})
		s.granted(uint64(id + 1))
	}
	effectsOf(s.State)
	if s.Sized() {
		t.Error("the size is known")
	}
	s.Resize(2)
	asks := strings.Split(effectsOf(s.State), ", ")
	if !slices.Contains(asks, "refuse 10: 1") {
		t.Errorf("the try, for which there is no room, is not refused: %q", asks)
	}
	if n := len(slices.DeleteFunc(asks, func(o string) bool { return !strings.HasPrefix(o, "ask lease") })); n != lookAhead {
		t.Errorf("%d leases are asked for, want %d", n, lookAhead)
	}
	s.granted(21)
	s.want("leave queue 1, grant 1, ask lease 29")
	s.Lost(29, requests.SessionLost) // not granted yet: then it waits anew
	s.want("leave lease 29, leave queue 9, enter queue 30, ask lease 31")
}

// Another client asks for a lease whose request still waits for a second one: the request is told
// when it holds, and not once it has released.
func TestRevoke(t *testing.T) {
	s := calls{t, New(&recorder{}, 2, true)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 2})
	s.granted(1)
	s.want("enter queue 1, ask lease 2, ask lease 3")
	s.granted(2)
	s.Revoke(2)
	s.want("")
	s.granted(3)
	s.want("leave queue 1, grant 1, revoke 1")
	s.Release(1)
	s.Revoke(3)
	s.want("return lease 2, return lease 3")
}

// The request of a multi-lock stops behind the request queue, keeps to no order among the leases,
// and is refused when it loses a node before the grant.
func TestMultiLock(t *testing.T) {
	s := calls{t, New(&recorder{}, 2, true)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, MultiLock: true, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 1})
	s.Acquire(requests.Incoming{ID: 3, Permits: 1, MultiLock: true})
	s.granted(1, 2)
	s.want("enter queue 1, enter queue 2, enter queue 3, pass 1, ask lease 4")
	if !s.Has("a") || s.Has("") || s.Has("b") {
		t.Error("the owners are not known")
	}
	s.Proceed(1)
	s.Proceed(1)
	s.Proceed(2)
	s.want("ask lease 5")
	s.granted(5) // its lease came first: that is its turn
	s.want("leave queue 1, grant 1")
	s.granted(3)
	s.want("pass 3")
	s.Lost(3, requests.NodeDeleted)
	s.want("leave queue 3, refuse 3: 5")
	s.Proceed(3)
	s.want("")
	s.granted(4)
	s.Lost(5, requests.SessionLost)
	s.want("leave queue 2, grant 2, leave lease 5, lose 1: 4")
}

// The number of permits is not known yet: the request of a multi-lock waits for it, or it would
// take its place in all queues for nothing.
func TestMultiLockBeforeTheSize(t *testing.T) {
	s := calls{t, New(&recorder{}, -1, false)}
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, MultiLock: true})
	s.granted(1)
	s.want("enter queue 1")
	s.Resize(1)
	s.want("pass 1")
	s.Cancel(1, requests.Cancelled)
	s.want("leave queue 1, refuse 1: 3")
}

// The loss of a lease crosses its release. The release is answered once each lease has answered, with the
// reason of the loss.
func TestLeaseLostDuringRelease(t *testing.T) {
	for _, lostFirst := range []bool{true, false} {
		s := calls{t, New(&recorder{}, 2, true)}
		s.Acquire(requests.Incoming{ID: 1, Permits: 2})
		s.granted(1, 2, 3)
		s.want("enter queue 1, ask lease 2, ask lease 3, leave queue 1, grant 1")
		s.Release(1)
		s.want("return lease 2, return lease 3")
		if lostFirst {
			s.Lost(2, requests.NodeDeleted)
			s.Released(3)
			s.want("")
			s.Refused(2, requests.NotHeld) // there is nothing to release
		} else {
			s.Released(2)
			s.Lost(3, requests.NodeDeleted)
			s.want("")
			s.Refused(3, requests.NotHeld)
		}
		s.want(fmt.Sprintf("refuse 1: %d", requests.NodeDeleted))
	}
}
