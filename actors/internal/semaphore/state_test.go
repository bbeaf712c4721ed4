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
	return stateTest{t, New(permits, fixed)}
}

// effects returns the effects since the last call. A request below is called by the number in its ID.
func (s stateTest) effects() string {
	texts := map[requests.EffectKind]string{requests.Acquire: "acquire lease %d", requests.Cancel: "withdraw lease %d",
		requests.Release: "release lease %d", requests.ReportTurn: "turn of %d", requests.Grant: "grant %d", requests.Refuse: "refuse %d: %v",
		requests.Lose: "lose %d: %v", requests.ConfirmRelease: "released %d", requests.RequestRevoke: "revoke %d"}
	inQueue := map[requests.EffectKind]string{requests.Acquire: "enter queue %d", requests.Cancel: "leave queue %d"}
	var all []string
	add := func(text string, args ...any) { all = append(all, fmt.Sprintf(text, args...)) }
	for _, f := range takeEffects(s.State) {
		switch f.Kind {
		case requests.NoteNode:
		case requests.Cancel, requests.Acquire, requests.Release:
			texts := texts
			if f.Below == queueBelow {
				texts = inQueue
			}
			add(texts[f.Kind], f.ID>>32)
		case requests.Refuse, requests.Lose:
			add(texts[f.Kind], f.ID, f.Reason)
		default:
			add(texts[f.Kind], f.ID)
		}
	}
	return strings.Join(all, ", ")
}

func (s stateTest) want(want string) {
	s.Helper()
	if got := s.effects(); got != want {
		s.Errorf("got  %s\nwant %s", got, want)
	}
}

func (s stateTest) granted(numbers ...int) {
	for _, n := range numbers {
		s.told(requests.Grant, n, 0)
	}
}

// told has a lock below tell of the request with a number, unless that has ended.
func (s stateTest) told(kind requests.EffectKind, number int, why requests.Reason) {
	for id := range s.below.All() {
		if int(id>>32) == number {
			s.Answered(requests.Effect{Kind: kind, ID: id, Reason: why})
		}
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
	s.told(requests.ConfirmRelease, 4, 0)
	s.want("")
	s.told(requests.ConfirmRelease, 3, 0)
	s.want("released 1")
	s.granted(6)
	s.want("leave queue 2, grant 2")
	s.told(requests.Lose, 6, requests.NodeDeleted)
	s.want("lose 2: NodeDeleted, withdraw lease 5")
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

// A request that releases a lease before its turn keeps its turn: a later one does not pass it.
func TestOutOfTurnKeepsOrder(t *testing.T) {
	s := newTest(t, 1, true)
	for id := requests.ID(1); id <= 3; id++ {
		s.Acquire(requests.Incoming{ID: id, Permits: 1})
	}
	s.granted(1, 2, 3)
	s.effects()
	s.granted(5) // 4 is now behind 5, and in front of 6
	s.want("withdraw lease 5, acquire lease 7")
	s.granted(4)
	s.want("leave queue 1, grant 1")
	s.granted(6)
	s.want("withdraw lease 6, acquire lease 8")
	s.granted(7, 8)
	s.want("leave queue 2, grant 2, leave queue 3, grant 3")
}

func TestRefusals(t *testing.T) {
	s := newTest(t, 3, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 2, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 2, Owner: "a", Try: true})
	s.Acquire(requests.Incoming{ID: 3, Permits: 2, Try: true})
	s.Acquire(requests.Incoming{ID: 4, Permits: 1, Owner: "a"})
	s.want("enter queue 1, refuse 2: WouldDeadlock, refuse 3: NotAcquired, enter queue 2")
	s.told(requests.Refuse, 1, requests.NotAcquired)
	s.want("refuse 1: NotAcquired")
	s.Acquire(requests.Incoming{ID: 5, Permits: 2, Owner: "a"})
	s.granted(2, 3)
	s.want("enter queue 3, acquire lease 4, acquire lease 5, acquire lease 6")
	s.told(requests.Refuse, 5, requests.NodeDeleted)
	s.want("withdraw lease 6, leave queue 3, refuse 5: NodeDeleted")
}

// No lease is acquired before the number of permits is known, and then not more than needed.
func TestResize(t *testing.T) {
	s := newTest(t, -1, false)
	for id := range requests.ID(30) {
		s.Acquire(requests.Incoming{ID: id + 1, Permits: 1, Owner: "a", Try: id == 19})
		s.granted(int(id + 1))
	}
	s.effects()
	if s.Sized() {
		t.Error("the number of permits is known")
	}
	s.Resize(2)
	effects := strings.Split(s.effects(), ", ")
	if !slices.Contains(effects, "refuse 20: NotAcquired") {
		t.Errorf("the try that exceeds the permits is not refused: %q", effects)
	}
	if n := len(slices.DeleteFunc(effects, func(f string) bool { return !strings.HasPrefix(f, "acquire lease") })); n != lookAhead {
		t.Errorf("%d leases are acquired, want %d", n, lookAhead)
	}
	s.granted(31)
	s.want("leave queue 1, grant 1, acquire lease 47")
	s.told(requests.Lose, 47, requests.SessionLost) // not granted yet: then it waits anew
	s.want("leave queue 17, enter queue 48, acquire lease 49")
}

// Another client asks for a lease whose request still waits for a second one: the holder is
// notified once the request holds, and no more after its release.
func TestRevoke(t *testing.T) {
	s := newTest(t, 2, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 2})
	s.granted(1)
	s.want("enter queue 1, acquire lease 2, acquire lease 3")
	s.granted(2)
	s.told(requests.RequestRevoke, 2, 0)
	s.want("")
	s.granted(3)
	s.want("leave queue 1, grant 1, revoke 1")
	s.told(requests.RequestRevoke, 2, 0) // the holder is asked again: a further request has no effect
	s.want("revoke 1")
	s.Release(1)
	s.told(requests.RequestRevoke, 3, 0)
	s.want("release lease 2, release lease 3")
}

// Another client asks for a lease that is lost before its request holds: the next lease is not
// asked for.
func TestRevokeOfALostLease(t *testing.T) {
	s := newTest(t, 1, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1})
	s.granted(1)
	s.told(requests.RequestRevoke, 2, 0)
	s.told(requests.Lose, 2, requests.SessionLost)
	s.want("enter queue 1, acquire lease 2, leave queue 1, enter queue 3")
	s.granted(3, 4)
	s.want("acquire lease 4, leave queue 3, grant 1")
}

// The request of a multi-lock waits for Proceed once it has passed the request queue, is granted
// leases in any order, and is refused when it loses a node before the grant.
func TestMultiLock(t *testing.T) {
	s := newTest(t, 2, true)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, Atomic: true, Owner: "a"})
	s.Acquire(requests.Incoming{ID: 2, Permits: 1})
	s.Acquire(requests.Incoming{ID: 3, Permits: 1, Atomic: true})
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
	s.told(requests.Lose, 3, requests.NodeDeleted)
	s.want("refuse 3: NodeDeleted")
	s.Proceed(3)
	s.want("")
	s.granted(4)
	s.told(requests.Lose, 5, requests.SessionLost)
	s.want("leave queue 2, grant 2, lose 1: SessionLost")
}

// The request of a multi-lock reports its turn only once the number of permits is known. It would
// take places in all queues for nothing otherwise.
func TestMultiLockBeforeResize(t *testing.T) {
	s := newTest(t, -1, false)
	s.Acquire(requests.Incoming{ID: 1, Permits: 1, Atomic: true})
	s.granted(1)
	s.want("enter queue 1")
	s.Resize(1)
	s.want("turn of 1")
	s.Cancel(1, requests.Cancelled)
	s.want("leave queue 1, refuse 1: Cancelled")
}

// A lease is lost while it is released. The release is answered once each lease has ended, with the
// reason of the loss.
func TestLeaseLostDuringRelease(t *testing.T) {
	for _, lost := range []int{2, 3} {
		s := newTest(t, 2, true)
		s.Acquire(requests.Incoming{ID: 1, Permits: 2})
		s.granted(1, 2, 3)
		s.want("enter queue 1, acquire lease 2, acquire lease 3, leave queue 1, grant 1")
		s.Release(1)
		s.want("release lease 2, release lease 3")
		s.told(requests.Lose, lost, requests.NodeDeleted)
		s.want("")
		s.told(requests.ConfirmRelease, 5-lost, 0)
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
	s.told(requests.Refuse, 2, requests.NotAcquired)
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
