package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// Identity tells actors apart: it is comparable, and the same for all messages of one
// actor. It outlives a restart of the actor, as a PID does.
type Identity struct {
	ref         *Ref   // a hosted actor that sent the message itself
	address, id string // otherwise: the PID
}

// IdentityOf returns the identity of an actor that has sent a message, and reports
// whether from is an actor: a Sender that is no protoactor future, or a *Ref.
func IdentityOf(from ask.Recipient) (Identity, bool) {
	switch from := from.(type) {
	case *Ref:
		return Identity{ref: from}, true
	case Sender:
		return Identity{address: from.PID.Address, id: from.PID.Id}, !from.IsFuture()
	}
	return Identity{}, false
}

// String is the name of a hosted actor, or the PID as address and id.
func (i Identity) String() string {
	if i.ref != nil {
		return i.ref.name
	}
	return i.address + "/" + i.id
}

// The ids of protoactor's futures: the prefix, and a number in these digits.
const (
	futurePrefix = "future$"
	futureDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ~+"
	maxDigits    = 11 // of 64 bits
)

// hasFutureID reports whether a future has such an id. An actor may have it, too: it is what
// actor.SpawnPrefix makes of the prefix "future".
func hasFutureID(pid *actor.PID) bool {
	number, found := strings.CutPrefix(pid.GetId(), futurePrefix)
	return found && number != "" && len(number) <= maxDigits && strings.Trim(number, futureDigits) == ""
}

// IsFuture reports whether the sender is a protoactor future, of this process or of a
// remote one: the answer to RequestFuture goes to one. A future takes one message of any
// kind, also a Watch, and is gone then. IsFuture takes a remote actor for
// a future if its id is "future$" and a number. actor.SpawnPrefix makes such ids of "future".
func (s Sender) IsFuture() bool {
	if !hasFutureID(s.PID) {
		return false
	}
	process, _ := s.System.ProcessRegistry.Get(s.PID)
	_, isActor := process.(*actor.ActorProcess)
	return !isActor
}

// Terminated is received by an actor when an actor that it watches has ended, or cannot be
// reached any more, or had ended before the Watch. What the watched actor sent before its
// end, from this process, is received before.
type Terminated struct{ Actor Identity }

// Watch has r receive Terminated when the actor ends. It never blocks. To watch an actor that
// has a PID, r is registered; the error is that of Register.
func (r *Ref) Watch(who Identity) error {
	if who.ref != nil {
		who.ref.post(watching{r, true}, true)
		return nil
	}
	if err := r.Register(); err != nil {
		return err
	}
	r.sendSystem(who, &actor.Watch{Watcher: r.PID()})
	return nil
}

// Unwatch ends what Watch began. A Terminated may still be on its way.
func (r *Ref) Unwatch(who Identity) {
	if who.ref != nil {
		who.ref.post(watching{r, false}, true)
		return
	}
	r.sendSystem(who, &actor.Unwatch{Watcher: r.PID()})
}

func (r *Ref) sendSystem(who Identity, msg any) {
	pid := actor.NewPID(who.address, who.id)
	process, _ := r.system.Actors.ProcessRegistry.Get(pid)
	process.SendSystemMessage(pid, msg)
}

// watching is actor.Watch, or Unwatch, between hosted actors, which need no PID.
type watching struct {
	watcher *Ref
	begins  bool
}

func (r *Ref) setWatching(w watching) {
	switch {
	case !w.begins:
		r.refWatchers = slices.DeleteFunc(r.refWatchers, func(other *Ref) bool { return other == w.watcher })
	case r.stopped:
		w.watcher.Tell(Terminated{Identity{ref: r}})
	default:
		r.refWatchers = append(r.refWatchers, w.watcher)
	}
}

// terminated is protoactor's message as a Terminated. It takes its turn behind the messages
// that are in the mailbox, which the sender may have sent before its end.
func (r *Ref) terminated(msg *actor.Terminated) {
	r.Tell(Terminated{Identity{address: msg.GetWho().GetAddress(), id: msg.GetWho().GetId()}})
}

// Undelivered is received by an actor when a message that it sent from the PID of an
// alias has reached no actor and no future.
type Undelivered struct {
	// Tag is that of the alias.
	Tag any
}

// Alias registers one more PID of the actor, to be used as the sender of a message.
// protoactor says to the sender of an undeliverable message that there was one, not
// which; from the PID of an alias r receives Undelivered with the tag. Any other message to
// that PID is received as one to the actor. EndAlias removes it. The error is that the
// actor has stopped.
func (r *Ref) Alias(tag any) (*actor.PID, error) {
	registry := r.system.Actors.ProcessRegistry
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	if r.mailbox.ended {
		return nil, fmt.Errorf("host: actor %q has stopped", r.name)
	}
	pid, added := registry.Add(alias{process{r}, tag}, r.name+registry.NextId())
	if !added {
		return nil, fmt.Errorf("host: alias of %q: %w", r.name, actor.ErrNameExists)
	}
	return pid, nil
}

// EndAlias removes the PID of an alias.
func (r *Ref) EndAlias(pid *actor.PID) { r.system.Actors.ProcessRegistry.Remove(pid) }

// alias is the process behind the PID of an alias.
type alias struct {
	process
	tag any
}

// SendUserMessage implements actor.Process.
func (a alias) SendUserMessage(pid *actor.PID, msg any) {
	if _, plain, _ := actor.UnwrapEnvelope(msg); isDeadLetter(plain) {
		a.ref.Tell(Undelivered{a.tag})
		return
	}
	a.process.SendUserMessage(pid, msg)
}

func isDeadLetter(msg any) bool {
	_, is := msg.(*actor.DeadLetterResponse)
	return is
}
