package actors

import (
	"errors"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A member is lost before the release arrives, which the member answers with ErrNotHeld. The owner
// gets the reason of the loss.
func TestMultiLockLostBeforeItsRelease(t *testing.T) {
	s := zktest.Embedded(t)
	locks, err := Connect(t.Context(), s.Addr(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	member := locks.Mutex("/a")
	multi := locks.MultiLock(member, locks.Mutex("/b"))
	actor, err := multi.entry()
	if err != nil {
		t.Fatal(err)
	}
	// The multi-lock's actor is blocked while the acquisition is locked and cannot take its grant.
	owner := &acquisition{handle: &multi.handle, entry: actor, msg: &messages.Acquire{Revocable: true}, ended: ErrReleased,
		release: ask.NewPromise[struct{}](nil)}
	owner.promise.Store(ask.NewPromise[*Grant](nil))
	owner.mu.Lock()
	ask.Send(actor.Self, owner.msg, owner)
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return s.Watches(t) == 2 }, "both members watch their nodes")
	owner.sendRelease()
	if err := s.Client(t).Delete("/a/"+s.Nodes(t, "/a")[0], -1); err != nil {
		t.Fatal(err)
	}
	next, err := member.Lock(t.Context()) // the member has sent the loss before
	if err != nil {
		t.Fatal(err)
	}
	owner.mu.Unlock()
	if _, err := owner.release.Future().Wait(t.Context()); !errors.Is(err, ErrNodeDeleted) {
		t.Errorf("the release: %v", err)
	}
	if err := next.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
