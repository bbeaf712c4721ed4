package group

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// request is one request of a member. It is the owner that the lock's actor sends messages to, most of
// which it passes on to the member's actor. It ends the context of a lost term itself: the context
// has ended when the lock's actor goes on.
type lockRequest struct {
	member    *Membership
	path      string
	recipe    *manager.Recipe
	acquire   *messages.Acquire
	partition int                           // -1: of the list of members
	term      atomic.Pointer[campaign.Term] // from the grant on, of a partition

	id requests.ID // only the lock's actor uses it

	// Only the member's actor uses these.
	entry   *manager.Entry
	ended   bool // a Cancel or a Release is sent
	runs    bool // the function of the term was started
	granted bool // of the list of members, before ended
	overdue bool // of the list of members: it was not granted soon
}

// answered is a message of a lock's actor about a request.
type answered struct {
	request *lockRequest
	message any // of service Owner, or an error
}

// begin hands the request to the lock's actor, which handles it in this goroutine if it is idle: so
// the requests are sent to ZooKeeper in order.
func (r *lockRequest) begin() {
	e, err := r.member.Manager.Find(r.path, r.recipe)
	if err != nil {
		r.member.self.Tell(answered{r, err})
		return
	}
	r.entry = e
	r.send(r.acquire)
}

func (r *lockRequest) send(msg any) { r.entry.Self.RunInlineIfIdle(&ask.Call{From: r, Message: msg}) }

// withdraw cancels the request, in whatever state it is. The last answer is Refused, once the node is gone.
func (r *lockRequest) withdraw() {
	r.ended = true
	if r.entry != nil {
		r.send(&messages.Cancel{AwaitNode: true})
	}
}

// release gives the grant back. The last answer is Released, or Refused after a loss.
func (r *lockRequest) release() {
	r.ended = true
	r.send(&messages.Release{})
}

// Tell implements ask.Recipient.
func (r *lockRequest) Tell(msg any) {
	switch msg := msg.(type) {
	case *messages.Lost:
		r.endTerm(msg)
	case *messages.Suspended:
		if r.member.Manager.StopOnSuspended {
			r.endTerm(messages.Reason_DISCONNECTED)
		}
		return
	case *messages.RevokeRequested:
		r.endTerm(campaign.ErrRevoked)
		if r.partition >= 0 {
			return
		}
	}
	r.member.self.Tell(answered{r, msg})
}

// endTerm ends the context of the term, if there is one, and frees what it holds.
func (r *lockRequest) endTerm(why error) {
	if t := r.term.Load(); t != nil {
		t.End(why)
	}
}

// OnGranted implements lock.Acquisition. The lock has no local queue: the step is that of the message.
func (r *lockRequest) OnGranted(granted *messages.Granted, _ uint32) {
	if r.partition >= 0 {
		r.term.Store(campaign.NewTerm(r.member.parent, r.path, r.member.Manager.Session.Lost, granted))
	}
	r.member.self.Tell(answered{r, granted})
}

// RequestID implements lock.Acquisition.
func (r *lockRequest) RequestID() *requests.ID { return &r.id }

// Owner implements lock.Acquisition.
func (r *lockRequest) Owner() string { return "" }

// Context implements lock.Acquisition.
func (r *lockRequest) Context() context.Context { return r.member.parent }

// IsElsewhere implements lock.Acquisition.
func (r *lockRequest) IsElsewhere() bool { return false }

// ArmLeakDetection implements lock.Acquisition. Nobody can drop the request.
func (r *lockRequest) ArmLeakDetection(time.Time) {}
