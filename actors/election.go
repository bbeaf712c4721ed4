package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/messages"
)

// Election has its participants lead one after the other, at most one at a time. It is a mutex
// whose nodes hold the ids of the participants: a leader is the holder of that mutex, and leads
// until it resigns or loses the lock. Participants lead in the order in which they have queued.
//
// On ZooKeeper it is Curator's LeaderSelector, or its LeaderLatch with LeaderLatchNodes. Programs
// with Curator may share the path: their getParticipants and getLeader show the ids of AsID. A
// Mutex on the path of a LeaderSelector is one more contender. An Election is a cheap handle; its
// methods may be called from any goroutine.
type Election struct {
	locks          *Locks
	lock           handle
	requires       []LockOption // RequireDirectory, or none
	id             []byte       // data of the participant's nodes; nil for the data of every lock
	resignOnRevoke bool
}

// ErrNoLeader is the error of Election.Leader while no participant leads.
var ErrNoLeader = errors.New("the election has no leader")

// ErrRevoked is the cause of a term's context that has ended because another client asked the
// leader to resign: see ResignOnRevoke.
var ErrRevoked = campaign.ErrRevoked

// ErrResigned is the cause of a term's context that has ended by Term.Resign, or by the end of the
// child of a Singleton.
var ErrResigned = campaign.ErrResigned

// ElectionOption sets something for an Election.
type ElectionOption interface {
	setElection(*Election) error
}

type electionOption func(*Election) error

func (set electionOption) setElection(e *Election) error { return set(e) }

// AsID sets the id of this participant: the data of its nodes, which Curator's participants show
// as its id, and Participants as Data. Several participants may have one id. Without it the nodes
// have the data that the nodes of all locks have. An id longer than Config.MaxNodeData is ErrLimit.
func AsID(id string) ElectionOption {
	return electionOption(func(e *Election) error {
		if id == "" {
			return check.Invalid("id is empty: it must be a name, or leave AsID out")
		}
		e.id = []byte(id)
		return e.lock.manager.CheckNodeData(e.id)
	})
}

// LeaderLatchNodes has the election use the nodes of Curator's LeaderLatch instead of those of
// its LeaderSelector. The two exclude participants of their own kind only, so all programs that
// use a path must choose the same.
func LeaderLatchNodes() ElectionOption {
	return electionOption(func(e *Election) error {
		e.lock.recipe = recipes.LeaderLatch
		return nil
	})
}

// ResignOnRevoke ends the context of a term, with ErrRevoked, when another client asks for the lock
// by Locks.Revoke or by Curator's Revoker, and when HoldAtMost does. A Singleton then stops its
// child. The leader still leads until it has resigned. It costs a read for each term.
func ResignOnRevoke() ElectionOption {
	return electionOption(func(e *Election) error {
		e.resignOnRevoke = true
		return nil
	})
}

// Election returns the election at path, an absolute path of ZooKeeper whose nodes are created
// when needed. It does not block or ask ZooKeeper: an unacceptable path or option shows at the
// first use, as ErrInvalid.
func (l *Locks) Election(path string, options ...ElectionOption) *Election {
	e := &Election{locks: l, lock: l.handle(path, recipes.Mutex, 0, nil)}
	for i, option := range options {
		err := check.Invalid(fmt.Sprintf("election option %d of %d is nil: leave it out", i+1, len(options)))
		if option != nil {
			err = option.setElection(e)
		}
		if err != nil && e.lock.problem == nil {
			e.lock.problem = err
		}
	}
	e.lock.recipe, _ = withOptions(e.lock.recipe, e.requires)
	return e
}

// Path returns the election's path.
func (e *Election) Path() string { return e.lock.path }

// Participants returns the leader and the waiting participants in the order in which they would
// lead: of all processes and libraries. It blocks, and fails, as Mutex.Participants does.
func (e *Election) Participants(ctx context.Context) ([]Participant, error) {
	return e.lock.Participants(ctx)
}

// Leader returns the participant that leads, or ErrNoLeader. It blocks, and otherwise fails, as
// Participants does. The leader may have changed when the answer arrives. A process whose
// participants lead one after the other may show the earlier one for a moment longer: the later one
// leads as soon as the deletion of the other's node is on its way.
func (e *Election) Leader(ctx context.Context) (Participant, error) {
	all, err := e.Participants(ctx)
	if err != nil {
		return Participant{}, err
	}
	if i := slices.IndexFunc(all, func(p Participant) bool { return p.Holds }); i >= 0 {
		return all[i], nil
	}
	return Participant{}, fmt.Errorf("%s: %w", e.Path(), ErrNoLeader)
}

// Observe returns a channel with the participants, and then again whenever they change: see
// Locks.Observe. So a program follows the leader, which is the first participant, without taking
// part:
//
//	for q := range election.Observe(ctx) {
//		if q.Err == nil && len(q.Participants) > 0 {
//			route(q.Participants[0].Data) // the id of the leader
//		}
//	}
func (e *Election) Observe(ctx context.Context) <-chan Queue {
	if e.lock.problem == nil {
		return e.locks.Observe(ctx, e.Path())
	}
	failed := make(chan Queue, 1)
	failed <- Queue{Path: e.Path(), Err: e.lock.problem}
	close(failed)
	return failed
}

// withID returns the options of a request of this participant, after those of the user. A request
// sets failOnLoss to whether it has FailOnSessionLoss.
func (e *Election) withID(options []Option, failOnLoss *bool) []Option {
	return append(slices.Clone(options), requestOption(func(m *messages.Acquire) error {
		switch {
		case m.Owner != "":
			return check.Invalid(fmt.Sprintf("WithOwner(%q): each campaign has an owner of its own, so that two of them never lead together", m.Owner))
		case m.Data != nil:
			return check.Invalid("WithData: the nodes of an election have the participant's id: use AsID")
		}
		*failOnLoss = m.FailOnSessionLoss
		m.Data, m.Revocable = e.id, m.Revocable || e.resignOnRevoke
		return nil
	}))
}
