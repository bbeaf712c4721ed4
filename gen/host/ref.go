package host

import (
	"cmp"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// Ref is the address of a hosted actor, and its mailbox.
type Ref struct {
	system     *System
	dispatcher *dispatcher // serves the mailbox
	named      Named
	handler    Actor
	flush      func() // Flush of a Collector; otherwise nil
	mailbox    mailbox
	pid        *actor.PID // nil unless the actor is registered; guarded by mailbox.mu

	// Only the goroutine that serves the mailbox uses the fields below.
	stopped  bool
	watchers map[Identity]uint64 // are informed of the end, in the order of these numbers; empty if stopped
	watches  uint64              // so far
}

// start allows the mailbox to be served, with the messages that have arrived before.
func (r *Ref) start(handler Actor) {
	r.handler = handler
	if c, ok := handler.(Collector); ok {
		r.flush = c.Flush
	}
	if r.mailbox.start() {
		r.dispatcher.schedule(r)
	}
}

// Register registers the actor with protoactor under its name, so that it has a PID. It does
// nothing if the actor is registered. The error is that the name is taken, or that the actor
// has stopped.
func (r *Ref) Register() error {
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	if r.pid != nil {
		return nil
	}
	if r.mailbox.ended { // end has run, which removes the registration
		return fmt.Errorf("host: actor %q has stopped", r.named.Name())
	}
	pid, added := r.system.Actors.ProcessRegistry.Add(refProcess{r}, r.named.Name())
	if !added {
		return fmt.Errorf("host: spawn %q: %w", r.named.Name(), actor.ErrNameExists)
	}
	r.pid = pid
	return nil
}

// Tell puts a message into the actor's mailbox. It never blocks.
func (r *Ref) Tell(msg any) { r.TellFrom(msg, nil) }

// TellFrom implements ask.SenderTaker. It never blocks.
func (r *Ref) TellFrom(msg any, from ask.Recipient) {
	if r.mailbox.put(msg, from) {
		r.dispatcher.schedule(r)
	}
}

// TellAhead is Tell for a message that overtakes those of Tell: for what the actor waits for, such
// as the answers to its own requests, which must not wait for more requests of others.
func (r *Ref) TellAhead(msg any) {
	if r.mailbox.putAhead(msg) {
		r.dispatcher.schedule(r)
	}
}

// RunInlineIfIdle handles msg in the calling goroutine if the actor is idle, which saves two
// changes of goroutine. Otherwise it puts msg into the mailbox, as Tell does. The caller must
// not hold a lock that the actor needs. The dispatcher handles the messages that arrive
// meanwhile, so that the caller handles no message but its own.
func (r *Ref) RunInlineIfIdle(msg any) {
	if !r.mailbox.tryEnter(msg) {
		return
	}
	r.handle(item{msg: msg}, false)
	r.runFlush()
	if r.mailbox.yield() {
		r.dispatcher.schedule(r)
	}
}

// PID returns the actor's address for protoactor, or nil if the actor is not registered.
func (r *Ref) PID() *actor.PID {
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	return r.pid
}

// Actor returns the Actor that the make function of Spawn or Start returned, or nil until it
// has returned.
func (r *Ref) Actor() Actor { return r.handler }

// Stop stops the actor. Refuse answers the messages that are in its mailbox or arrive later.
// Stop does not block.
func (r *Ref) Stop() { r.postSystem(&actor.Stop{}) }

// postSystem puts one of protoactor's own messages into the mailbox.
func (r *Ref) postSystem(msg any) {
	if r.mailbox.putSystem(msg) {
		r.dispatcher.schedule(r)
	}
}

// refProcess makes a Ref a process of protoactor, as its futures are. protoactor's own actors are
// processes that take several times the memory.
type refProcess struct{ ref *Ref }

// SendUserMessage implements actor.Process.
func (p refProcess) SendUserMessage(_ *actor.PID, msg any) { p.ref.Tell(msg) }

// SendSystemMessage implements actor.Process.
func (p refProcess) SendSystemMessage(_ *actor.PID, msg any) { p.ref.postSystem(msg) }

// Stop implements actor.Process.
func (p refProcess) Stop(*actor.PID) { p.ref.Stop() }

// serve handles the messages of one turn, and reports whether there are more. The dispatcher
// calls it, in one goroutine at a time.
func (r *Ref) serve() (more bool) {
	for i := 1; i <= throughput; i++ {
		next, system, ok := r.mailbox.next()
		if !ok {
			return false
		}
		r.handle(next, system)
		if r.flush != nil && (i%flushInterval == 0 || r.mailbox.isEmpty()) {
			r.runFlush()
		}
	}
	return r.mailbox.yield()
}

// flushInterval is the greatest number of messages that a Collector receives between two
// calls of Flush. It divides throughput.
const flushInterval = 64

// runFlush calls Flush of a Collector.
func (r *Ref) runFlush() {
	if r.flush == nil || r.stopped {
		return
	}
	defer r.recoverFrom(flushing{})
	r.flush()
}

// flushing stands for the message in the log line about a panic of Flush.
type flushing struct{}

// recoverFrom stops the actor if it has panicked because of msg. Callers defer it.
func (r *Ref) recoverFrom(msg any) {
	if failure := recover(); failure != nil {
		r.fail(msg, failure)
	}
}

func (r *Ref) handle(i item, system bool) {
	defer r.recoverFrom(i.msg)
	if system {
		r.handleSystem(i.msg)
		return
	}
	receive := r.handler.Receive
	if r.stopped {
		receive = r.handler.Refuse
	}
	if i.from != nil {
		receive(i.from, i.msg)
		return
	}
	if _, stop := i.msg.(*actor.PoisonPill); stop {
		r.end(nil)
		return
	}
	_, msg, sender := actor.UnwrapEnvelope(i.msg)
	switch envelope, ok := msg.(ask.Envelope); {
	case ok:
		receive(envelope.Unwrap())
	case sender != nil:
		receive(Sender{r.system.Actors, sender, r.PID()}, msg)
	default:
		receive(nil, msg)
	}
}

// handleSystem handles protoactor's own messages, and the watchRequests of hosted actors.
func (r *Ref) handleSystem(msg any) {
	switch msg := msg.(type) {
	case *actor.Stop:
		r.end(nil)
	case *actor.Watch:
		r.onWatchRequest(watchRequest{watcher: identityOf(msg.GetWatcher())})
	case *actor.Unwatch:
		r.onWatchRequest(watchRequest{watcher: identityOf(msg.GetWatcher()), unwatch: true})
	case watchRequest:
		r.onWatchRequest(msg)
	case *actor.Terminated: // into the mailbox, behind the messages that the ended actor has sent before
		r.Tell(Terminated{identityOf(msg.GetWho())})
	}
}

// fail ends the actor because of a panic of Receive, Refuse, Flush or Stopped.
func (r *Ref) fail(msg, failure any) {
	defer func() {
		if again := recover(); again != nil {
			r.system.Logger.Error("actor failed once more as it stopped", "actor", r.named.Name(), "failure", again, "do", "restart the process, and report a defect")
		}
	}()
	r.system.Logger.Error("actor failed and is stopped", "actor", r.named.Name(),
		"failure", failure, "message", typeOf(msg), "stack", string(debug.Stack()), "do", "report a defect of the actor")
	r.end(failure)
}

func typeOf(msg any) string {
	_, msg, _ = actor.UnwrapEnvelope(msg)
	if envelope, ok := msg.(ask.Envelope); ok {
		_, msg = envelope.Unwrap()
	}
	return fmt.Sprintf("%T", msg)
}

// end stops the actor, once: it removes the registration, calls Stopped and notifies the
// watchers.
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
		for _, watcher := range slices.SortedFunc(maps.Keys(r.watchers), func(a, b Identity) int { return cmp.Compare(r.watchers[a], r.watchers[b]) }) {
			r.tellEnd(watcher)
		}
		r.watchers = nil
	}()
	r.handler.Stopped(failure)
}
