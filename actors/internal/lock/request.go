package lock

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Request is an Acquire as the lock's actor remembers it, from the Acquire until it is refused or
// its grant is over. A lost grant of a named owner is over when the owner has released it, except
// of a semaphore.
type Request struct {
	// ID names the request to the state machine.
	ID requests.ID
	// Kind is the kind that the request wants.
	Kind queue.Kind
	// Granted is the grant, or nil until then. It stays. Nothing may write to it.
	Granted *messages.Granted
	// Released reports that the owner has released the grant. The release may be under way.
	Released bool
	// FromLockActor reports that another lock's actor asks on behalf of owners.
	FromLockActor bool
	// Try reports that the request does not wait.
	Try bool

	key        *requestKey     // nil for an Acquisition, which needs none
	since      time.Duration   // when the request came, or was granted; see Session.Now
	owner      ask.Recipient   // gets all messages about the request but the answer to Release
	releaser   ask.Recipient   // gets the answer to Release; may be nil
	extras     *extras         // nil for a request without them
	lost       messages.Reason // why the grant is lost; 0 otherwise: see awaitRelease
	revokeSent bool
	takenBack  bool // the owner has not released in time, and lost the grant by that
}

// extras are what few requests have. A limit of 0 is none.
type extras struct {
	wait, hold time.Duration
	epoch      uint64      // of the first session with which it fails while it waits; 0 for none
	timer      *time.Timer // until the next message about a limit; nil if there was none yet
	revoked    bool        // the holder was asked to release at the end of hold
	monitor    manager.RequestMonitor
	sender     watchedSender     // of a request that an actor has sent
	alias      *actor.PID        // the PID from which a future got Granted
	lossWait   []*lossWait       // what waits for the Release of a lost grant
	awaitNode  func(then func()) // of a Cancel: see NodeAwaiter
}

func (r *Request) needExtras() *extras {
	if r.extras == nil {
		r.extras = &extras{}
	}
	return r.extras
}

// Acquisition is a request of Go code in this process, as its lock's actor sees it. Only this
// actor calls the methods besides Tell.
type Acquisition interface {
	ask.Recipient
	// RequestID returns where the actor keeps the request's ID while it is open. It spares the
	// table a map entry for each request: more than a tenth of an acquire by a local queue.
	RequestID() *requests.ID
	// Owner returns the name of the owner, or "".
	Owner() string
	// Context returns the context that the request was made with. The actor calls it once, and only
	// if the manager has a Monitor.
	Context() context.Context
	// OnGranted receives a grant whose token has a step of its own, in place of a Granted by Tell.
	// Grants by one node can share the message, which nothing may write to: that spares an acquire by
	// a local queue one message, a tenth of its time.
	OnGranted(granted *messages.Granted, step uint32)
	// IsElsewhere reports that the owner is in another process, and believes in a grant until a
	// message reaches it. It answers Lost by Release then. A TakeBack comes if it has not in time.
	IsElsewhere() bool
	// ArmLeakDetection reports from now on when the user drops the future or the grant. The
	// actor calls it at each tick: most requests are over before the first. since is when the
	// request was made, or granted.
	ArmLeakDetection(since time.Time)
}

// Acquisition returns the request of Go code, or nil if another sender has made the request.
func (r *Request) Acquisition() Acquisition {
	a, _ := r.owner.(Acquisition)
	return a
}

func (r *Request) isElsewhere() bool {
	a := r.Acquisition()
	return a != nil && a.IsElsewhere()
}

// Number returns the number that the owner has given to the request: 0 for an Acquisition.
func (r *Request) Number() uint64 {
	if r.key == nil {
		return 0
	}
	return r.key.id
}

// Tell sends a message to the owner of the request.
func (r *Request) Tell(msg any) { r.owner.Tell(msg) }

// notify tells the owner what is no answer. A protoactor future does not get it: it would put the
// message in the place of an answer that has not been read.
func (r *Request) notify(msg any) {
	if to, is := r.owner.(host.Sender); !is || !to.IsFuture() {
		r.Tell(msg)
	}
}

func (r *Request) state() manager.RequestState {
	switch {
	case r.lost != 0:
		return manager.Lost
	case r.Released:
		return manager.Releasing
	case r.Granted != nil:
		return manager.Held
	}
	return manager.Waiting
}

// OwnerName returns the name of the owner, or "".
func (r *Request) OwnerName() string {
	if a := r.Acquisition(); a != nil {
		return a.Owner()
	}
	return r.key.owner
}

// actor returns the address of the actor that has sent the request, or "".
func (r *Request) actor() string {
	if r.FromLockActor {
		return ""
	}
	if who, is := host.IdentityOf(r.owner); is {
		return who.String()
	}
	return ""
}

func (r *Request) monitor() manager.RequestMonitor {
	if r.extras == nil {
		return nil
	}
	return r.extras.monitor
}

// requestKey identifies a request by its owner and the number that the owner has given it.
type requestKey struct {
	// from is the actor that has sent the request; zero for a named owner, unless a lock's actor
	// asks.
	from  host.Identity
	owner string // the name in the message, or ""
	id    uint64
}

// sender is the sender of a message, as it is known.
type sender struct {
	ask.Recipient             // nil for a message without a sender
	acquisition   Acquisition // nil for other senders
	// isLockActor reports that the sender is another lock's actor, which asks on behalf of owners:
	// the requests of those have been counted.
	isLockActor bool
}

func senderOf(from ask.Recipient) sender {
	s := sender{Recipient: from}
	if ref, is := from.(*host.Ref); is {
		_, s.isLockActor = ref.Actor().(interface{ LockActor() })
	} else {
		s.acquisition, _ = from.(Acquisition)
	}
	return s
}

// isInternal reports whether the sender belongs to this library. Other senders name kinds by the
// numbers of lock.proto, and each of their requests needs an owner that can release it.
func (s sender) isInternal() bool { return s.acquisition != nil || s.isLockActor }

// key returns the key of a request of the sender.
func (s sender) key(owner string, id uint64) requestKey {
	key := requestKey{owner: owner, id: id}
	if owner == "" || s.isInternal() {
		key.from, _ = host.IdentityOf(s.Recipient)
	}
	return key
}
