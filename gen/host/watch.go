package host

import (
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
)

// Identity identifies the actor that sent a message. It is comparable, and the same for all
// messages of one actor, also after a restart of the actor, as a PID is.
type Identity struct {
	ref         *Ref   // set for a hosted actor that is the sender itself
	address, id string // the PID otherwise
}

// IdentityOf returns the identity of a message's sender, and reports whether it is an actor: a
// Sender that is no protoactor future, or a *Ref.
func IdentityOf(from ask.Recipient) (Identity, bool) {
	switch from := from.(type) {
	case *Ref:
		return Identity{ref: from}, true
	case Sender:
		return identityOf(from.PID), !from.IsFuture()
	}
	return Identity{}, false
}

func identityOf(pid *actor.PID) Identity {
	return Identity{address: pid.GetAddress(), id: pid.GetId()}
}

// pid returns the PID of an actor that is no hosted one.
func (i Identity) pid() *actor.PID { return actor.NewPID(i.address, i.id) }

// String returns the name of a hosted actor, or the PID as address and id.
func (i Identity) String() string {
	if i.ref != nil {
		return i.ref.named.Name()
	}
	return i.address + "/" + i.id
}

// The id of a protoactor future is the prefix and a number in these digits.
const (
	futurePrefix = "future$"
	futureDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ~+"
	maxDigits    = 11 // for 64 bits
)

// hasFutureID reports whether pid has the form of a future's id. An actor may have such an id:
// actor.SpawnPrefix makes it of the prefix "future".
func hasFutureID(pid *actor.PID) bool {
	number, found := strings.CutPrefix(pid.GetId(), futurePrefix)
	return found && number != "" && len(number) <= maxDigits && strings.Trim(number, futureDigits) == ""
}

// IsFuture reports whether the sender is a protoactor future, of this process or of a remote
// one. RequestFuture makes a future the sender. A future accepts one message of any kind, also
// a Watch, and ends. IsFuture also returns true for a remote actor whose id is "future$" and a
// number, as actor.SpawnPrefix makes them of the prefix "future".
func (s Sender) IsFuture() bool {
	if !hasFutureID(s.PID) {
		return false
	}
	process, _ := s.System.ProcessRegistry.Get(s.PID)
	_, isActor := process.(*actor.ActorProcess)
	return !isActor
}

// Terminated is the message to an actor that an actor it watches has ended, cannot be reached
// any more, or had ended before the Watch. It arrives after all messages that the watched
// actor sent from this process.
type Terminated struct{ Actor Identity }

// Watch requests that r receives Terminated when the target ends. It never blocks. It
// registers r if the target has a PID; the error is from Register.
func (r *Ref) Watch(target Identity) error {
	if target.ref != nil {
		target.ref.postSystem(watchRequest{watcher: Identity{ref: r}})
		return nil
	}
	if err := r.Register(); err != nil {
		return err
	}
	if !r.sendSystem(target, &actor.Watch{Watcher: r.PID()}) {
		r.Tell(Terminated{target})
	}
	return nil
}

// Unwatch undoes Watch. It never blocks. A Terminated may still be on its way.
func (r *Ref) Unwatch(target Identity) {
	if target.ref != nil {
		target.ref.postSystem(watchRequest{watcher: Identity{ref: r}, unwatch: true})
		return
	}
	r.sendSystem(target, &actor.Unwatch{Watcher: r.PID()})
}

// sendSystem sends a message to an actor that is no hosted one. It returns false if the actor has
// ended: protoactor would log a dead letter.
func (r *Ref) sendSystem(target Identity, msg any) bool {
	pid := target.pid()
	process, lives := r.system.Actors.ProcessRegistry.Get(pid)
	if lives {
		process.SendSystemMessage(pid, msg)
	}
	return lives
}

// watchRequest is actor.Watch, or Unwatch. Hosted actors, which need no PID, send it to each other.
// It overtakes other messages, as those do.
type watchRequest struct {
	watcher Identity
	unwatch bool
}

func (r *Ref) onWatchRequest(w watchRequest) {
	switch {
	case w.unwatch:
		delete(r.watchers, w.watcher)
	case r.stopped:
		r.tellEnd(w.watcher)
	default:
		if r.watchers == nil {
			r.watchers = map[Identity]uint64{}
		}
		r.watches++
		r.watchers[w.watcher] = r.watches
	}
}

// tellEnd informs a watcher of the end of r.
func (r *Ref) tellEnd(watcher Identity) {
	if watcher.ref != nil {
		watcher.ref.Tell(Terminated{Identity{ref: r}})
		return
	}
	r.sendSystem(watcher, &actor.Terminated{Who: r.PID()})
}

// Undelivered is the message to an actor that a message sent from the PID of one of its
// aliases has reached no actor and no future.
type Undelivered struct {
	// Tag is the tag of the alias.
	Tag any
}

// Alias registers one more PID of the actor, for use as the sender of a message. protoactor
// informs the sender of an undeliverable message, but not of which message it was: for a
// message sent from an alias, r receives Undelivered with the tag. Any other message to the
// PID goes to the actor. EndAlias removes the PID. The error is that the actor has stopped.
func (r *Ref) Alias(tag any) (*actor.PID, error) {
	registry := r.system.Actors.ProcessRegistry
	r.mailbox.mu.Lock()
	defer r.mailbox.mu.Unlock()
	if r.mailbox.ended {
		return nil, fmt.Errorf("host: actor %q has stopped", r.named.Name())
	}
	pid, added := registry.Add(alias{refProcess{r}, tag}, r.named.Name()+registry.NextId())
	if !added {
		return nil, fmt.Errorf("host: alias of %q: %w", r.named.Name(), actor.ErrNameExists)
	}
	return pid, nil
}

// EndAlias removes the PID of an alias.
func (r *Ref) EndAlias(pid *actor.PID) { r.system.Actors.ProcessRegistry.Remove(pid) }

// alias is the process registered under the PID of an alias.
type alias struct {
	refProcess
	tag any
}

// SendUserMessage implements actor.Process.
func (a alias) SendUserMessage(pid *actor.PID, msg any) {
	_, plain, _ := actor.UnwrapEnvelope(msg)
	if _, undelivered := plain.(*actor.DeadLetterResponse); undelivered {
		a.ref.Tell(Undelivered{a.tag})
		return
	}
	a.refProcess.SendUserMessage(pid, msg)
}
