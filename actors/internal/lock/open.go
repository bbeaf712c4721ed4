package lock

import (
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/host"
)

// answerOpen answers the question for the open requests.
func (s *Actor) answerOpen(q manager.OpenQuery) {
	var all []manager.OpenRequest
	for _, r := range s.Requests() {
		all = append(all, manager.OpenRequest{Entry: s.Entry, Kind: r.Kind, Owner: r.OwnerName(), Actor: r.actor(), State: r.state(), Granted: r.Granted,
			Since: s.Manager.Bridge.TimeOf(r.since), FromLockActor: r.FromLockActor})
	}
	q.Reply <- all
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
