package actors

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// acquisition is one request of Go code, from Acquire to the end of its grant. It is the owner that
// the lock's actor sends messages to, and the actor keeps it alive until that end. It must not keep
// the Future or the Grant alive for long: leak detection (abandon.go) has the garbage collector find a
// Future or a Grant that the user has dropped.
type acquisition struct {
	// The acquisition ignores Contended, which it does not ask for. Its handlers get a struct{} in
	// place of the sender, which is always the lock's actor.
	messages.IgnoreOwner[struct{}]

	handle  *handle
	msg     *messages.Acquire                   // other requests may share it: nothing may write to it
	promise atomic.Pointer[ask.Promise[*Grant]] // until it is complete
	unwatch func() bool                         // stops the watch of the context

	// From send on, only the lock's actor uses these.
	id            requests.ID     // of the open request; 0 for none
	unarmedFuture *Future[*Grant] // while unarmed
	unarmedGrant  *Grant          // while unarmed
	unarmed       bool            // no leak detection until the actor calls ArmLeakDetection (abandon.go)

	mu              sync.Mutex
	abandoned       bool              // the user has given the request up
	droppedHeld     bool              // the user has dropped the grant while it held: the lock stays held until a loss, after which a.end releases it
	revokeRequested bool              // the user should release: another client asks for the lock, or most of HoldAtMost is over
	announced       bool              // the grant is over, its contexts have ended, and Done is closed: see announceEndLocked
	step            uint32            // of the grant's token
	entry           *manager.Entry    // the lock's actor that has the request, as the manager knows it
	granted         *messages.Granted // the grant but for step; other acquisitions may share it
	ended           error             // why the grant is over; nil before that
	notifications   *notifications    // nil until one is needed
	release         *ask.Promise[struct{}]
}

func newAcquisition(h *handle) (*acquisition, *ask.Promise[*Grant]) {
	a := &acquisition{handle: h, unarmed: true}
	return a, ask.NewPromise[*Grant](a)
}

// notifications holds what few acquisitions need: the channels and contexts that the user has asked
// for, and what leak detection, a Monitor and HoldAtMost need. Most requests wait without any of
// them.
type notifications struct {
	done     chan struct{} // closed when the grant is over
	revoked  chan struct{} // closed when revokeRequested is set
	contexts map[context.Context]context.CancelCauseFunc
	holdFrom time.Duration // when the time of HoldAtMost began, by the clock of the session
	// heldSince is when the lock was granted, known once leak detection is armed; zero before.
	heldSince time.Time
	// ctx is the context of the request until the lock's actor asks for it; nil without a Monitor.
	ctx      context.Context
	acquired stack // of the goroutine that has made the request, if Config.RecordStacks is set
}

// notificationsLocked needs a.mu, as do the fields of its result.
func (a *acquisition) notificationsLocked() *notifications {
	if a.notifications == nil {
		a.notifications = &notifications{}
	}
	return a.notifications
}

// contextsLocked needs a.mu. It returns what ends the contexts that have not ended, and maybe some
// that have.
func (a *acquisition) contextsLocked() []context.CancelCauseFunc {
	if a.notifications == nil {
		return nil
	}
	return slices.Collect(maps.Values(a.notifications.contexts))
}

// plainAcquires are the requests without options, by kind. All such requests share these
// messages, which are a good part of the memory of a waiter.
var plainAcquires = func() (all [queue.MaxKinds]*messages.Acquire) {
	for kind := range all {
		all[kind] = &messages.Acquire{Kind: uint32(kind)}
	}
	return all
}()

func (a *acquisition) cancel(e *manager.Entry) {
	messages.LockRef{To: e.Self}.SendCancel(&messages.Cancel{}, a)
}

func (a *acquisition) sendRelease() { a.entry.Self.RunInlineIfIdle((*releaseEnvelope)(a)) }

// releaseEnvelope is an acquisition as the Release that it sends, with itself as the sender.
type releaseEnvelope acquisition

// Unwrap implements ask.Envelope.
func (e *releaseEnvelope) Unwrap() (ask.Recipient, any) { return (*acquisition)(e), plainRelease }

// plainRelease is the Release of all acquisitions; nothing may write to it. An acquisition has
// one request, which needs no number.
var plainRelease = &messages.Release{}

// stack is the calls that have led to a request, innermost first.
type stack []uintptr

// stackDepth bounds a stack: the log has one line for it.
const stackDepth = 12

// callers returns the stack of the caller, without the part that belongs to this package.
func callers() stack {
	all := make(stack, stackDepth+4)
	return all[:runtime.Callers(2, all)]
}

// String returns the calls outside of this package, as "function (file:line)".
func (s stack) String() string {
	var calls []string
	frames := runtime.CallersFrames(s)
	for more := true; more && len(calls) < stackDepth; {
		var f runtime.Frame
		f, more = frames.Next()
		own := strings.HasPrefix(f.Function, ownPackage)
		if f.Function != "" && !(own && len(calls) == 0) {
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return strings.Join(calls, " < ")
}

const ownPackage = "github.com/actorlock/actorlock/actors."
