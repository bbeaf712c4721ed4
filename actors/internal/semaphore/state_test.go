package semaphore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// stateTest is a State whose effects a test checks.
type stateTest struct {
	*testing.T
	*State
}

func newTest(t *testing.T, permits int, fixed bool) stateTest {
	return stateTest{t, New(&recorder{}, permits, fixed)}
}

// effects returns the effects since the last call.
func (s stateTest) effects() string {
	texts := map[string]string{"EnterRequestQueue": "enter queue %d", "LeaveRequestQueue": "leave queue %d", "AcquireLease": "acquire lease %d",
		"WithdrawLease": "withdraw lease %d", "ReleaseLease": "release lease %d", "ReportTurn": "turn of %d", "Grant": "grant %d",
		"Refuse": "refuse %d: %v", "Lose": "lose %d: %v", "ConfirmRelease": "released %d", "RequestRevoke": "revoke %d"}
	var all []string
	for _, f := range takeEffects(s.State) {
		args := []any{f.ID}
		switch f.Kind {
		case "EnterRequestQueue", "LeaveRequestQueue", "AcquireLease", "WithdrawLease", "ReleaseLease":
			args[0] = f.Serial
		case "Refuse", "Lose":
			args = append(args, f.Reason)
		}
		all = append(all, fmt.Sprintf(texts[f.Kind], args...))
	}
	return strings.Join(all, ", ")
}

func (s stateTest) want(want string) {
	s.Helper()
	if got := s.effects(); got != want {
		s.Errorf("got  %s\nwant %s", got, want)
	}
}

func (s stateTest) granted(serials ...uint64) {
	for _, serial := range serials {
		s.Granted(Lease{Serial: serial, Token: requests.Token{Czxid: int64(serial)}})
	}
}

func TestState(t *testing.T) {
	s := newTest(t, 3, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 2})
	s.Acquire(requests.Incoming{ID: 2, Permits: 2})
	s.want("enter queue 1, enter queue 2")
	s.granted(1, 2) // both have passed the request queue: one process
	s.want("acquire lease 3, acquire lease 4, acquire lease 5, acquire lease 6")
	s.granted(3)
	s.want("")
	s.granted(4)
	s.want("leave queue 1, grant 1")
	s.granted(5)
	s.Release(1)
	s.want("release lease 3, release lease 4")
	s.Cancel(1, requests.Cancelled) // too late
	s.Released(4)
	s.want("")
	s.Released(3)
	s.want("released 1")
	s.granted(6)
	s.want("leave queue 2, grant 2")
	s.Lost(6, requests.NodeDeleted)
	s.want("lose 2: NodeDeleted, withdraw lease 5, withdraw lease 6")
	s.Release(2)
	s.want("refuse 2: NotHeld")
	if !s.Idle() {
		t.Error("it is not idle")
	}
}

// A deleted lease of the first request is created again behind those of the second. The second one
// releases the leases that it is granted before its turn.
func TestOutOfTurn(t *testing.T) {
	s := newTest(t, 4, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 3})
	s.Acquire(requests.Incoming{ID: 2, Permits: 3})
	s.granted(1, 2)
	s.effects()
	s.granted(3, 4) // 5 is now behind 6, 7 and 8
	s.granted(6)
	s.want("withdraw lease 6, withdraw lease 7, withdraw lease 8, acquire lease 9, acquire lease 10, acquire lease 11")
	s.granted(7) // the grant of a withdrawn request is ignored
	s.granted(5)
	s.want("leave queue 1, grant 1")
	s.granted(9)
	s.Release(1)
	s.granted(10, 11)
	s.want("release lease 3, release lease 4, release lease 5, leave queue 2, grant 2")
}

func TestRefusals(t *testing.T) {
	s := newTest(t, 3, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 2, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 2, Owner: "a", Try: true})
	s.Acquire(requests.Incoming{ID: 3, Permits: 2, Try: true})
	s.Acquire(requests.Incoming{ID: 4, Permits: 1, Owner: "a"})
	s.want("enter queue 1, refuse 2: WouldDeadlock, refuse 3: NotAcquired, enter queue 2")
	s.Refused(1, requests.NotAcquired)
	s.want("refuse 1: NotAcquired")
	s.Acquire(requests.Incoming{ID: 5, Permits: 2, Owner: "a"})
	s.granted(2, 3)
	s.want("enter queue 3, acquire lease 4, acquire lease 5, acquire lease 6")
	s.Refused(5, requests.NodeDeleted)
	s.want("withdraw lease 6, leave queue 3, refuse 5: NodeDeleted")
}

// No lease is acquired before the number of permits is known, and then not more than needed.
func TestResize(t *testing.T) {
	s := newTest(t, -1, false)
	for id := range requests.ID(20) {
		s.Acquire(requests.Incoming{ID: id + 1, Permits: 1, Owner: "a", Try: id == 9})
		s.granted(uint64(id + 1))
	}
	s.effects()
	if s.Sized() {
		t.Error("the number of permits is known")
	}
	s.Resize(2)
	effects := strings.Split(s.effects(), ", ")
	if !slices.Contains(effects, "refuse 10: NotAcquired") {
		t.Errorf("the try that exceeds the permits is not refused: %q", effects)
	}
	if n := len(slices.DeleteFunc(effects, func(f string) bool { return !strings.HasPrefix(f, "acquire lease") })); n != lookAhead {
		t.Errorf("%d leases are acquired, want %d", n, lookAhead)
	}
	s.granted(21)
	s.want("leave queue 1, grant 1, acquire lease 29")
	s.Lost(29, requests.SessionLost) // not granted yet: then it waits anew
	s.want("withdraw lease 29, leave queue 9, enter queue 30, acquire lease 31")
}

// Another client asks for a lease whose request still waits for a second one: the holder is
// notified once the request holds, and no more after its release.
func TestRevoke(t *testing.T) {
	s := newTest(t, 2, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 2})
	s.granted(1)
	s.want("enter queue 1, acquire lease 2, acquire lease 3")
	s.granted(2)
	s.Revoke(2)
	s.want("")
	s.granted(3)
	s.want("leave queue 1, grant 1, revoke 1")
	s.Revoke(2) // the holder is asked again: a further request has no effect
	s.want("revoke 1")
	s.Release(1)
	s.Revoke(3)
	s.want("release lease 2, release lease 3")
}

// Another client asks for a lease that is lost before its request holds: the next lease is not
// asked for.
func TestRevokeOfALostLease(t *testing.T) {
	s := newTest(t, 1, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1})
	s.granted(1)
	s.Revoke(2)
	s.Lost(2, requests.SessionLost)
	s.want("enter queue 1, acquire lease 2, withdraw lease 2, leave queue 1, enter queue 3")
	s.granted(3, 4)
	s.want("acquire lease 4, leave queue 3, grant 1")
}

// The request of a multi-lock waits for Proceed once it has passed the request queue, is granted
// leases in any order, and is refused when it loses a node before the grant.
func TestMultiLock(t *testing.T) {
	s := newTest(t, 2, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, MultiLock: true, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 1})
	s.Acquire(requests.Incoming{ID: 3, Permits: 1, MultiLock: true})
	s.granted(1, 2)
	s.want("enter queue 1, enter queue 2, enter queue 3, turn of 1, acquire lease 4")
	if !s.Has("a") || s.Has("") || s.Has("b") {
		t.Error("the owners are not known")
	}
	s.Proceed(1)
	s.Proceed(1)
	s.Proceed(2)
	s.want("acquire lease 5")
	s.granted(5) // its lease was granted first
	s.want("leave queue 1, grant 1")
	s.granted(3)
	s.want("turn of 3")
	s.Lost(3, requests.NodeDeleted)
	s.want("leave queue 3, refuse 3: NodeDeleted")
	s.Proceed(3)
	s.want("")
	s.granted(4)
	s.Lost(5, requests.SessionLost)
	s.want("leave queue 2, grant 2, lose 1: SessionLost, withdraw lease 5")
}

// The request of a multi-lock reports its turn only once the number of permits is known. It would
// take places in all queues for nothing otherwise.
func TestMultiLockBeforeResize(t *testing.T) {
	s := newTest(t, -1, false)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, MultiLock: true})
	s.granted(1)
	s.want("enter queue 1")
	s.Resize(1)
	s.want("turn of 1")
	s.Cancel(1, requests.Cancelled)
	s.want("leave queue 1, refuse 1: Cancelled")
}

// The loss of a lease crosses its release. The release is answered once each lease has answered,
// with the reason of the loss.
func TestLeaseLostDuringRelease(t *testing.T) {
	for _, lostFirst := range []bool{true, false} {
		s := newTest(t, 2, true)
		s.Acquire(requests.Incoming{ID: 1, Permits: 2})
		s.granted(1, 2, 3)
		s.want("enter queue 1, acquire lease 2, acquire lease 3, leave queue 1, grant 1")
		s.Release(1)
		s.want("release lease 2, release lease 3")
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
		s.want("refuse 1: NodeDeleted")
	}
}

// Zero permits are a number of permits, too: what asks for a lease then waits below, or is refused
// there.
func TestNoPermits(t *testing.T) {
	s := newTest(t, -1, false)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, Try: true})
	s.granted(1)
	s.want("enter queue 1")
	if s.Sized() {
		t.Error("the number of permits is known before Resize")
	}
	s.Resize(0)
	s.want("acquire lease 2")
	if !s.Sized() {
		t.Error("the number of permits is not known after Resize(0)")
	}
	s.Refused(2, requests.NotAcquired)
	s.want("leave queue 1, refuse 1: NotAcquired")
	s.Acquire(requests.Incoming{ID: 2, Permits: 1, Try: true}) // none is known to be there
	s.want("refuse 2: NotAcquired")
}

// A try asks again, too, if its leases come out of turn.
func TestTryOutOfTurn(t *testing.T) {
	s := newTest(t, 4, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1})
	s.Acquire(requests.Incoming{ID: 2, Permits: 1, Try: true})
	s.granted(1, 2, 4)
	s.want("enter queue 1, enter queue 2, acquire lease 3, acquire lease 4, withdraw lease 4, acquire lease 5")
	s.granted(3, 5)
	s.want("leave queue 1, grant 1, leave queue 2, grant 2")
}
