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

// owner is an actor that asks for a lock by messages.
type owner struct {
	w     *world
	p     *process
	id    int
	rand  *rand.Rand
	uses  []use
	path  string
	pid   *actor.PID
	name  string // of one that asks by futures; "" is an actor
	lock  *actor.PID
	try   bool
	wait  time.Duration
	asked time.Duration
	state requestStage
	since time.Duration
	gone  bool // stopped, or its process killed

	mu    sync.Mutex
	inbox []any

	believes bool
	session  int64 // of the grant
}

func (o *owner) String() string {
	return fmt.Sprintf("actor %d of %s for %s %v since %v", o.id, o.p.name, o.path, o.state, o.since)
}

func newActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

// withPID is any handle.
type withPID interface {
	PID() (*actor.PID, error)
}

// askAsActor makes the request of an entry by a new actor.
func (w *world) askAsActor(e entry) {
	p := w.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || p.system == nil || len(w.open)+len(w.owners) > maxOpen {
		return
	}
	rnd := e.rand()
	a := p.alone(rnd)
	pid, err := a.Member.(withPID).PID()
	if err != nil {
		w.line("%s: no PID of %s: %v", p.name, a.Path(), err)
		return
	}
	w.asked++
	o := &owner{w: w, p: p, id: w.asked, rand: rnd, uses: []use{a.use}, path: a.Path(), lock: pid, asked: w.now(), since: w.now()}
	o.pid = p.system.Root.Spawn(actor.PropsFromFunc(o.receive))
	msg := &messages.Acquire{RequestId: 1, Permits: uint32(a.permits), Kind: a.number()}
	if a.permits == 1 {
		msg.Permits = 0
	}
	switch rnd.IntN(4) {
	case 0:
		o.try, msg.Try = true, true
	case 1:
		o.wait = time.Duration(1 + rnd.Int64N(int64(5*time.Second)))
		msg.WaitNanos = int64(o.wait)
	}
	w.line("actor %d of %s asks for %s: try %v, wait %v", o.id, p.name, describe(o.uses), o.try, o.wait)
	w.owners = append(w.owners, o)
	o.tell(msg)
}

// number is the kind as an actor says it.
func (a access) number() uint32 {
	switch {
	case a.path == root+"/custom":
		return uint32(a.kind) + 1
	case a.path == root+"/rw" || a.path == root+"/rwlocal" || a.path == root+"/simplerw":
		if a.weight == allReaders {
			return uint32(messages.Kind_WRITE)
		}
		return uint32(messages.Kind_READ)
	}
	return 0
}

func (o *owner) tell(msg any) { o.p.system.Root.RequestWithCustomSender(o.lock, msg, o.pid) }

func (o *owner) receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *messages.Granted, *messages.Refused, *messages.Released, *messages.Lost:
		o.mu.Lock()
		o.inbox = append(o.inbox, msg)
		o.mu.Unlock()
	}
}

func (w *world) lookAtOwners(now time.Duration) {
	all := w.owners[:0]
	for _, o := range w.owners {
		o.look(now)
		if o.state != done {
			all = append(all, o)
		}
	}
	clear(w.owners[len(all):])
	w.owners = all
}

func (o *owner) look(now time.Duration) {
	if o.gone {
		return
	}
	o.mu.Lock()
	inbox := o.inbox
	if !o.p.frozen {
		o.inbox = nil
	}
	o.mu.Unlock()
	over := slices.ContainsFunc(inbox, func(msg any) bool { _, lost := msg.(*messages.Lost); return lost })
	if o.p.frozen { // a clock shows it as well as a message does
		if over || o.p.hasLost(o.session) {
			o.disbelieve()
		}
		return
	}
	for _, msg := range inbox {
		o.hear(now, msg, over)
	}
	if o.p.dead && isDone(o.p.ended) { // Locks have been closed and have answered all requests
		if o.state == waiting {
			o.w.fail(now, "%v: its locks are closed and it has no answer", o)
		}
		o.finish()
	}
}

// hear is told a message; over says that the loss of the grant is among those that came with it,
// as after a freeze: then the actor never believes in it.
func (o *owner) hear(now time.Duration, msg any, over bool) {
	switch msg := msg.(type) {
	case *messages.Granted:
		o.w.grants++
		o.w.line("actor %d is granted: token %v, node %s", o.id, actors.TokenOf(msg), msg.Node)
		o.state, o.since, o.believes, o.session = holds, now, !over, msg.SessionId
		if !over {
			o.w.note(&holding{id: -o.id, owner: o.pid.String(), token: actors.TokenOf(msg), uses: o.uses, nodes: nodesOf(msg),
				session: msg.SessionId, calm: o.p.calm, process: o.p.name})
		}
		o.w.after(time.Duration(o.rand.ExpFloat64()*float64(50*time.Millisecond)), o.release)
	case *messages.Refused:
		o.w.line("actor %d is refused: %v %s", o.id, msg.Reason, msg.Detail)
		if !o.fits(now, msg.Reason) {
			o.w.fail(now, "%v: the answer does not fit: %v %s", o, msg.Reason, msg.Detail)
		}
		o.finish()
	case *messages.Lost:
		o.w.line("actor %d loses: %v", o.id, msg.Reason)
		if o.w.faulty == 0 {
			o.w.fail(now, "%v was lost without a fault: %v", o, msg.Reason)
		}
		o.disbelieve()
	case error:
		o.timedOut(msg)
	case *messages.Released:
		o.w.line("actor %d is released", o.id)
		o.finish()
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

func (o *owner) fits(now time.Duration, why messages.Reason) bool {
	switch why {
	case messages.Reason_NOT_ACQUIRED:
		return o.try
	case messages.Reason_TIMED_OUT:
		return o.wait > 0 && now >= o.asked+o.wait
	case messages.Reason_DISCONNECTED:
		return o.try && o.w.faulty > 0
	case messages.Reason_UNAVAILABLE:
		return o.w.faulty > 0 && (isLocal(o.path) || now > o.asked+unresolved*o.w.plan.session)
	case messages.Reason_CLOSED:
		return o.p.dead
	case messages.Reason_LIMIT_EXCEEDED:
		return o.p.limited
	case messages.Reason_NO_AUTH:
		return o.asked < o.w.denied || o.state == releasing
	case messages.Reason_NOT_HELD, messages.Reason_SESSION_LOST, messages.Reason_NODE_DELETED:
		return o.state == releasing && o.w.faulty > 0
	}
	return false
}

func (o *owner) disbelieve() {
	if o.believes {
		o.believes = false
		o.w.ended(o.w.now(), -o.id)
	}
}

func (o *owner) release() {
	switch {
	case o.gone || o.state != holds:
		return
	case o.p.frozen:
		o.w.after(100*time.Millisecond, o.release)
		return
	case o.name == "" && o.rand.IntN(8) == 0:
		o.stop()
		return
	}
	o.disbelieve()
	o.state, o.since = releasing, o.w.now()
	o.w.line("actor %d releases", o.id)
	if o.name != "" {
		o.ask(&messages.Release{RequestId: 1, Owner: o.name}, time.Minute)
		return
	}
	o.tell(&messages.Release{RequestId: 1})
}

// stop ends the actor without a word: the lock withdraws its request.
func (o *owner) stop() {
	o.w.line("actor %d stops", o.id)
	o.kill()
	if o.name == "" {
		o.p.system.Root.Stop(o.pid)
	}
}

// kill is the end of the actor, or of its process.
func (o *owner) kill() {
	o.gone = true
	o.disbelieve()
	o.w.noteBusy(o.p, o.uses, o.w.now())
	o.state = done
}

func (o *owner) finish() {
	if o.gone {
		return
	}
	o.kill()
	if o.name == "" {
		o.p.system.Root.Stop(o.pid)
	}
}
