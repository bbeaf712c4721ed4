package simulation

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// actorRequest is the request of an actor, which it makes by messages.
type actorRequest struct {
	sim            *simulation
	p              *process
	id             int
	rand           *rand.Rand
	uses           []use
	path           string
	pid            *actor.PID
	name           string // "" for an actor; the owner's name for a request by futures
	lock           *actor.PID
	try            bool
	wait           time.Duration
	requestedAt    time.Duration
	clockAtRequest time.Duration // by the clock of the process
	stage          requestStage
	stageSince     time.Duration
	stopped        bool // its actor was stopped, or its process killed

	mu    sync.Mutex
	inbox []any

	believed    bool
	session     int64    // of the grant
	nodes       []string // of the grant
	suspended   int      // how often it got Suspended while the connection is lost
	suspensions uint64   // of the process, at the last check with a connection, or before the request
	asked       bool     // it got RevokeRequested
}

func (a *actorRequest) String() string {
	return fmt.Sprintf("actor %d of %s for %s %v since %v", a.id, a.p.name, a.path, a.stage, a.stageSince)
}

func newActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

// pidHandle is a handle of any recipe.
type pidHandle interface {
	PID() (*actor.PID, error)
}

// newActorRequest returns a request for a random lock, and its message. It returns nil if the
// process cannot make the request of the entry.
func (sim *simulation) newActorRequest(e entry) (*actorRequest, *messages.Acquire) {
	p := sim.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || p.system == nil || len(sim.requests)+len(sim.actorRequests) > maxOpenRequests {
		return nil, nil
	}
	rnd := e.rand()
	acc := p.anyLock(rnd)
	pid, err := acc.Member.(pidHandle).PID()
	if err != nil {
		sim.record("%s: no PID of %s: %v", p.name, acc.Path(), err)
		return nil, nil
	}
	sim.requestCount++
	a := &actorRequest{sim: sim, p: p, suspensions: p.suspensionsBefore(), id: sim.requestCount, rand: rnd, uses: []use{acc.use}, path: acc.Path(), lock: pid, requestedAt: sim.now(), clockAtRequest: p.clock(), stageSince: sim.now()}
	msg := &messages.Acquire{RequestId: 1, Permits: uint32(acc.permits), Kind: acc.number()}
	if acc.permits == 1 {
		msg.Permits = 0
	}
	return a, msg
}

// acquireByActor makes the request of an entry by a new actor.
func (sim *simulation) acquireByActor(e entry) {
	a, msg := sim.newActorRequest(e)
	if a == nil {
		return
	}
	a.pid = a.p.system.Root.Spawn(actor.PropsFromFunc(a.receive))
	switch a.rand.IntN(4) {
	case 0:
		a.try, msg.Try = true, true
	case 1:
		a.wait = time.Duration(1 + a.rand.Int64N(int64(5*time.Second)))
		msg.WaitNanos = int64(a.wait)
	}
	sim.record("actor %d of %s asks for %s: try %v, wait %v", a.id, a.p.name, describeUses(a.uses), a.try, a.wait)
	sim.actorRequests = append(sim.actorRequests, a)
	a.send(msg)
}

// number returns the kind as a number of messages.Acquire.
func (acc access) number() uint32 {
	switch {
	case acc.path == root+"/custom":
		return uint32(acc.kind) + 1
	case acc.path == root+"/rw" || acc.path == root+"/rwlocal":
		if acc.weight == rwCapacity {
			return uint32(messages.Kind_WRITE)
		}
		return uint32(messages.Kind_READ)
	}
	return 0
}

func (a *actorRequest) send(msg any) { a.p.system.Root.RequestWithCustomSender(a.lock, msg, a.pid) }

func (a *actorRequest) receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *messages.Granted, *messages.Refused, *messages.Released, *messages.Lost, *messages.Suspended, *messages.RevokeRequested:
		a.mu.Lock()
		a.inbox = append(a.inbox, msg)
		a.mu.Unlock()
	}
}

func (sim *simulation) advanceActorRequests(now time.Duration) {
	all := sim.actorRequests[:0]
	for _, a := range sim.actorRequests {
		a.advance(now)
		if a.stage != stageDone {
			all = append(all, a)
		}
	}
	clear(sim.actorRequests[len(all):])
	sim.actorRequests = all
}

func (a *actorRequest) advance(now time.Duration) {
	if a.stopped {
		return
	}
	a.mu.Lock()
	inbox := a.inbox
	if !a.p.frozen {
		a.inbox = nil
	}
	a.mu.Unlock()
	lost := slices.ContainsFunc(inbox, func(msg any) bool { _, is := msg.(*messages.Lost); return is })
	if a.p.frozen { // a clock reports the loss as well as a message does
		if lost || a.p.hasLost(a.session) {
			a.endBelief()
		}
		return
	}
	for _, msg := range inbox {
		a.handleMessage(now, msg, lost)
	}
	if a.p.dead && isDone(a.p.closed) { // closed Locks have answered all requests
		if a.stage == stageWaiting {
			a.sim.fail(now, "%v has no answer, and its Locks are closed", a)
		}
		a.finish()
	}
}

// handleMessage handles one message. lost reports whether the loss of the grant came together with
// the message, as after a freeze: then the actor never believes in the grant.
func (a *actorRequest) handleMessage(now time.Duration, msg any, lost bool) {
	switch msg := msg.(type) {
	case *messages.Granted:
		a.sim.grants++
		a.sim.record("actor %d is granted: token %v, node %s", a.id, actors.TokenOf(msg), msg.Node)
		a.stage, a.stageSince, a.believed, a.session, a.nodes = stageHeld, now, !lost, msg.SessionId, nodesOf(msg)
		if !lost {
			a.sim.noteGrant(&heldGrant{id: -a.id, owner: a.pid.String(), token: actors.TokenOf(msg), uses: a.uses, nodes: a.nodes,
				session: msg.SessionId, unaffectedSince: a.p.unaffectedSince, process: a.p.name})
		}
		a.sim.after(time.Duration(a.rand.ExpFloat64()*float64(50*time.Millisecond)), a.release)
	case *messages.Suspended:
		a.suspended++
	case *messages.RevokeRequested:
		a.asked = true
	case *messages.Refused:
		a.sim.record("actor %d is refused: %v %s", a.id, msg.Reason, msg.Detail)
		if !a.isExpectedReason(now, msg.Reason) {
			a.sim.fail(now, "%v: the answer does not fit: %v %s", a, msg.Reason, msg.Detail)
		}
		a.finish()
	case *messages.Lost:
		a.sim.record("actor %d loses: %v", a.id, msg.Reason)
		if a.sim.lastFault == 0 {
			a.sim.fail(now, "%v was lost without a fault: %v", a, msg.Reason)
		}
		a.endBelief()
	case error:
		a.futureEnded(msg)
	case *messages.Released:
		a.sim.record("actor %d is released", a.id)
		a.finish()
	}
}

func nodesOf(g *messages.Granted) (nodes []string) {
	if len(g.Parts) == 0 {
		return []string{g.Path + "/" + g.Node}
	}
	for _, part := range g.Parts {
		nodes = append(nodes, part.Path+"/"+part.Node)
	}
	return nodes
}

func (a *actorRequest) isExpectedReason(now time.Duration, why messages.Reason) bool {
	switch why {
	case messages.Reason_NOT_ACQUIRED:
		return a.try
	case messages.Reason_TIMED_OUT:
		return a.wait > 0 && now >= a.requestedAt+a.wait
	case messages.Reason_DISCONNECTED:
		return a.try && a.sim.lastFault > 0
	case messages.Reason_UNAVAILABLE:
		return a.sim.lastFault > 0 && (isLocalQueue(a.path) || a.p.unknownTooLong(a.clockAtRequest))
	case messages.Reason_CLOSED:
		return a.p.dead
	case messages.Reason_SEQUENCE_EXHAUSTED:
		return a.sim.numbersUsedUp
	case messages.Reason_LIMIT_EXCEEDED:
		return a.p.limited
	case messages.Reason_NO_AUTH:
		return a.requestedAt < a.sim.deniedUntil || a.stage == stageReleasing
	case messages.Reason_NOT_HELD, messages.Reason_SESSION_LOST, messages.Reason_NODE_DELETED:
		return a.stage == stageReleasing && a.sim.lastFault > 0
	}
	return false
}

func (a *actorRequest) endBelief() {
	if a.believed {
		a.believed = false
		a.sim.ended(a.sim.now(), -a.id)
	}
}

func (a *actorRequest) release() {
	switch {
	case a.stopped || a.stage != stageHeld:
		return
	case a.p.frozen:
		a.sim.after(100*time.Millisecond, a.release)
		return
	case a.name == "" && a.rand.IntN(8) == 0:
		a.stop()
		return
	}
	a.endBelief()
	a.stage, a.stageSince = stageReleasing, a.sim.now()
	a.sim.record("actor %d releases", a.id)
	if a.name != "" {
		a.sendByFuture(&messages.Release{RequestId: 1, Owner: a.name}, time.Minute)
		return
	}
	a.send(&messages.Release{RequestId: 1})
}

// stop stops the actor without a release. The lock then withdraws the request.
func (a *actorRequest) stop() {
	a.sim.record("actor %d stops", a.id)
	a.kill()
	if a.name == "" {
		a.p.system.Root.Stop(a.pid)
	}
}

// kill ends the request because its actor or its process has ended.
func (a *actorRequest) kill() {
	a.stopped = true
	a.endBelief()
	a.sim.noteUse(a.p, a.uses, a.sim.now())
	a.stage = stageDone
}

func (a *actorRequest) finish() {
	if a.stopped {
		return
	}
	a.kill()
	if a.name == "" {
		a.p.system.Root.Stop(a.pid)
	}
}
