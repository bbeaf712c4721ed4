package zkbridge

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A request whose answer is left out is answered soon, over another connection: a later answer shows
// that none will come, or that of a ping if nothing else is sent. The session goes on.
func TestAnswerIsLeftOut(t *testing.T) {
	t.Parallel()
	const timeout = 12 * time.Second
	for _, c := range []struct {
		name  string
		fault embedded.Fault
		ask   func(u *user, directory, node string) // returns when the request is answered
		soon  bool                                  // another request follows
	}{
		{"create", embedded.Fault{Op: embedded.OpMulti}, func(u *user, directory, _ string) { u.created(directory, "more-") }, true},
		{"delete", embedded.Fault{Op: embedded.OpDelete}, func(u *user, directory, node string) {
			u.release(directory, node)
			next[*messages.NodeReleased](u)
		}, false},
		{"list", embedded.Fault{Op: embedded.OpGetChildren2}, func(u *user, directory, _ string) { u.list(directory) }, false},
		{"get", embedded.Fault{Op: embedded.OpGetData, Path: "/d/n-"}, func(u *user, directory, node string) { u.watch(directory, node) }, false},
		{"list before get", embedded.Fault{Op: embedded.OpGetChildren2}, func(u *user, directory, node string) {
			u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: 1, Directory: directory}, u)
			u.watch(directory, node)
			next[*messages.Listed](u)
		}, true},
		{"multi", embedded.Fault{Op: embedded.OpMulti}, func(u *user, directory, node string) {
			u.failed(u.transact(check(directory)), messages.Reason_OUTCOME_UNKNOWN)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := zktest.Virtual(t)
				u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: timeout}))
				node := u.created("/d", "n-").GetNode()
				time.Sleep(2 * time.Second) // the connection is not a short one
				c.fault.Action = embedded.LeaveOutReply
				fault, began := s.Embedded().Inject(c.fault), time.Now()
				c.ask(u, "/d", node)
				limit := 2*timeout/zkconn.BeatsPerTimeout + 100*time.Millisecond
				if c.soon {
					limit = 100 * time.Millisecond
				}
				if took := time.Since(began); len(fault.Firings()) != 1 || took > limit {
					t.Errorf("answered after %v", took)
				}
				time.Sleep(time.Second)
				u.keepsSession()
			})
		})
	}
}
