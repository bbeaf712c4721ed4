package host

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// Ref is a hosted actor as others see it.
type Ref struct {
	system   *System
	name     string
	handler  Actor
	flush    func() // of a Collector; otherwise nil
	mailbox  mailbox
	pid      *actor.PID   // nil if it is not registered; guarded by mailbox.mu
	priority bool         // see SpawnPriority
	stopped  bool         // this and watchers belong to whoever serves the mailbox
	watchers []*actor.PID // to be told of the end

	refWatchers []*Ref // as watchers
}

// start has the messages served that came since the Ref was made, and those to come.
func (r *Ref) start(handler Actor) {
	r.handler = handler
	if c, ok := handler.(Collector); ok {
		r.flush = c.Flush
	}
	if r.mailbox.open() {
		r.dispatcher().schedule(r)
	}
}

// Register makes the actor known to protoactor by its name, so that it has a PID. It does
// nothing if that was done before.
func (r *Ref) Register() error {
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	if r.pid != nil {
		return nil
	}
	if r.mailbox.ended { // nobody would take it out of the registry again
		return fmt.Errorf("host: actor %q has stopped", r.name)
	}
	pid, added := r.system.Actors.ProcessRegistry.Add(process{r}, r.name)
	if !added {
		return fmt.Errorf("host: spawn %q: %w", r.name, actor.ErrNameExists)
	}
	r.pid = pid
	return nil
}

// Tell puts a message into the actor's mailbox.
func (r *Ref) Tell(msg any) { r.post(msg, false) }

// RunInlineIfIdle is Tell by somebody who may as well handle the message: if the actor is idle, it
// mostly has been handled when RunInlineIfIdle returns, which saves two changes of goroutine. Who
// hands must not hold a lock that the actor needs. Messages that come meanwhile are left
// to others, so that nobody works for longer than for a message of its own.
func (r *Ref) RunInlineIfIdle(msg any) {
	if !r.mailbox.tryEnter(msg) {
		return
	}
	r.handle(msg, false)
	r.settle()
	if r.mailbox.rest() {
		r.dispatcher().schedule(r)
	}
}

// dispatcher returns the one that serves the mailbox.
func (r *Ref) dispatcher() *dispatcher {
	if r.priority {
		return r.system.priority
	}
	return r.system.dispatcher
}

// PID is the actor's address for protoactor; nil if it is not registered.
func (r *Ref) PID() *actor.PID {
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	return r.pid
}

// Actor is what handles the messages: what make gave to Spawn or Start. It is nil until
// make has returned.
func (r *Ref) Actor() Actor { return r.handler }

// Stop makes the actor stop. What is in its mailbox by then, or comes later, is
// answered by Refuse. It does not block.
func (r *Ref) Stop() { r.post(&actor.Stop{}, true) }

func (r *Ref) post(msg any, system bool) {
	if r.mailbox.put(msg, system) {
		r.dispatcher().schedule(r)
	}
}

// process is a Ref as protoactor sees it: a process of its own kind, like protoactor's
// futures. Its actors are processes that take several times the memory.
type process struct{ ref *Ref }

// SendUserMessage implements actor.Process.
func (p process) SendUserMessage(_ *actor.PID, msg any) { p.ref.post(msg, false) }

// SendSystemMessage implements actor.Process.
func (p process) SendSystemMessage(_ *actor.PID, msg any) { p.ref.post(msg, true) }

// Stop implements actor.Process.
func (p process) Stop(*actor.PID) { p.ref.Stop() }

// serve handles the messages of one turn, and reports whether there are more. The
// dispatcher calls it, once at a time.
func (r *Ref) serve() (more bool) {
	for i := 1; i <= turn; i++ {
		msg, system, ok := r.mailbox.next()
		if !ok {
			return false
		}
		r.handle(msg, system)
		if r.flush != nil && (i%collected == 0 || r.mailbox.isEmpty()) {
			r.settle()
		}
	}
	return r.mailbox.rest()
}

// collected is how many messages a Collector gets at most before it is flushed. It divides turn.
const collected = 64

// settle has a Collector do what it has put off.
func (r *Ref) settle() {
	if r.flush == nil || r.stopped {
		return
	}
	defer r.survive(flushing{})
	r.flush()
}

// flushing is what the log calls the message because of which a Flush panics.
type flushing struct{}

// survive is deferred where the actor may panic because of a message.
func (r *Ref) survive(msg any) {
	if failure := recover(); failure != nil {
		r.fail(msg, failure)
	}
}

func (r *Ref) handle(msg any, system bool) {
	defer r.survive(msg)
	if system {
		r.obey(msg)
		return
	}
	if _, stop := msg.(*actor.PoisonPill); stop {
		r.end(nil)
		return
	}
	take := r.handler.Receive
	if r.stopped {
		take = r.handler.Refuse
	}
	_, msg, sender := actor.UnwrapEnvelope(msg)
	switch envelope, ok := msg.(ask.Envelope); {
	case ok:
		take(envelope.Unwrap())
	case sender != nil:
		take(Sender{r.system.Actors, sender, r.PID()}, msg)
	default:
		take(nil, msg)
	}
}

// obey is for protoactor's own messages, and for those that overtake others between hosted
// actors.
func (r *Ref) obey(msg any) {
	switch msg := msg.(type) {
	case *actor.Stop:
		r.end(nil)
	case *actor.Watch:
		if r.stopped {
			r.tellEnd(msg.Watcher)
			return
		}
		r.watchers = append(r.watchers, msg.Watcher)
	case *actor.Unwatch:
		r.watchers = slices.DeleteFunc(r.watchers, msg.Watcher.Equal)
	case *actor.Terminated:
		r.terminated(msg)
	case watching:
		r.setWatching(msg)
	}
}

// fail ends the actor because of a panic. That may have come from its end.
func (r *Ref) fail(msg, failure any) {
	defer func() {
		if again := recover(); again != nil {
			r.system.Logger.Error("actor failed once more as it stopped", "actor", r.name, "failure", again)
		}
	}()
	r.system.Logger.Error("actor failed and is stopped", "actor", r.name,
		"failure", failure, "message", typeOf(msg), "stack", string(debug.Stack()))
	r.end(failure)
}

func typeOf(msg any) string {
	_, msg, _ = actor.UnwrapEnvelope(msg)
	if envelope, ok := msg.(ask.Envelope); ok {
		_, msg = envelope.Unwrap()
	}
	return fmt.Sprintf("%T", msg)
}

func (r *Ref) end(failure any) {
	if r.stopped {
		return
	}
	r.stopped = true
	r.mailbox.mu.Lock()
	r.mailbox.ended = true
	pid := r.pid
	r.mailbox.mu.Unlock()
	if pid != nil {
		r.system.Actors.ProcessRegistry.Remove(pid)
	}
	defer func() {
		for _, watcher := range r.watchers {
			r.tellEnd(watcher)
		}
		for _, watcher := range r.refWatchers {
			watcher.Tell(Terminated{Identity{ref: r}})
		}
		r.watchers, r.refWatchers = nil, nil
	}()
	r.handler.Stopped(failure)
}

func (r *Ref) tellEnd(watcher *actor.PID) {
	process, _ := r.system.Actors.ProcessRegistry.Get(watcher)
	process.SendSystemMessage(watcher, &actor.Terminated{Who: r.PID()})
}
