package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

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
	lock           handle
	requires       []LockOption // RequireDirectory, or none
	id             []byte       // data of the participant's nodes; nil for the data of every lock
	resignOnRevoke bool
}

// ErrNoLeader is the error of Election.Leader while no participant leads, and of Partitions.Leader while
// no member leads the partition.
var ErrNoLeader = errors.New("there is no leader")

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
	e := &Election{lock: l.handle(path, recipes.Mutex, 0, nil)}
	for i, option := range options {
		err := check.Invalid(fmt.Sprintf("election option %d of %d is nil: leave it out", i+1, len(options)))
		if option != nil {
			err = option.setElection(e)
		}
		e.lock.problem = cmp.Or(e.lock.problem, err)
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
	return observed(ctx, e.lock.target())
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

// Term is the time for which one participant leads.
type Term struct {
	grant  *Grant
	number int
	work   context.Context
	cancel context.CancelCauseFunc // of work
}

// Context returns the context for the work of the term: a child of Campaign's. It ends at the
// latest when the term does, as Grant.Context does; with ResignOnRevoke also when another client
// asks the leader to resign. Its cause says why.
func (t *Term) Context() context.Context { return t.work }

// Token returns the fencing token of the term, which is greater than those of all earlier terms
// of all participants.
func (t *Term) Token() Token { return t.grant.Token() }

// Number returns how many terms the campaign has had, this one included.
func (t *Term) Number() int { return t.number }

// Grant returns the grant of the lock, for its Guard, Verify, Err, Revoked and Node. Its Release
// resigns before the body of the loop is left: only for work that is done already.
func (t *Term) Grant() *Grant { return t.grant }

// Resign ends the context of the term, with ErrResigned as its cause, so that the body of the loop
// returns; the term is over then, and the campaign queues again, at the end. Any goroutine may call
// it, for example the handler of an operator's command. It does not block. A term whose context has
// ended stays as it is.
func (t *Term) Resign() { t.cancel(ErrResigned) }

// Campaign returns the terms of this participant, one after the other. The body of the loop is
// the work of a term:
//
//	for term, err := range election.Campaign(ctx) {
//		if err != nil {
//			return err // the campaign has ended
//		}
//		lead(term.Context(), term.Token()) // returns when the context ends
//	}
//
// The loop waits until this participant leads, and then runs the body. To leave the body, in
// whatever way, is to resign: the lock is released only then, after the work has returned. A panic
// in the body resigns, too, and goes on. Resigning blocks until ZooKeeper has acknowledged that the
// node is deleted, or until the session is lost, also after the end of ctx. Curator's
// LeaderSelector does the same when takeLeadership returns. Afterwards the loop queues again, at
// the end.
//
// The campaign outlives the loss of the session and of the connection, the deletion of its node,
// and the end of HoldAtMost: the context of a term ends, and after the body the loop waits for the
// next term. It also goes on after ErrLimit, ErrInternal and ErrSequenceExhausted, with pauses of
// up to 10 s that the log reports. All other errors are final: the loop runs the body once
// more, with the error and a nil Term, and ends. These are the cause of ctx, ErrClosed,
// ErrDraining, ErrInvalid, ErrNoAuth, ErrNoDirectory, ErrUnavailable, and what the options ask for: ErrTimedOut of
// WithTimeout, ErrNotAcquired and ErrSuspended of Try, ErrSessionLost of FailOnSessionLoss for a
// request that waits. After a break out of the loop there is no further call of the body.
// Locks.Drain ends a campaign that waits, but no term: end ctx for that.
//
// The options are those of each term's request. WithOwner and WithData are refused (ErrInvalid):
// each loop is an owner of its own, so that several campaigns in one process exclude each other.
// If a handle of this process uses the path with LocalQueue or LockDelay, the campaign ends with
// ErrInvalid. An actor must not call it: see Singleton.
func (e *Election) Campaign(ctx context.Context, options ...Option) iter.Seq2[*Term, error] {
	return func(yield func(*Term, error) bool) {
		if err := e.lock.problem; err != nil || ctx == nil {
			yield(nil, cmp.Or(err, check.ErrNilContext))
			return
		}
		var failOnLoss bool
		options := e.withID(options, &failOnLoss)
		for number := 1; ; number++ {
			grant, err := e.await(ctx, options, &failOnLoss)
			if err == nil {
				var more bool
				if more, err = e.lead(ctx, grant, number, yield); !more {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// await blocks until this participant leads. Its error is final. failOnLoss is whether the last
// request had FailOnSessionLoss.
func (e *Election) await(ctx context.Context, options []Option, failOnLoss *bool) (*Grant, error) {
	for attempt := 0; ; attempt++ {
		grant, err := e.lock.Lock(ctx, options...)
		if !campaign.IsTemporary(err) || *failOnLoss && errors.Is(err, ErrSessionLost) {
			return grant, err
		}
		pause := campaign.Pause(attempt)
		e.lock.manager.Log.Warn(campaign.Retrying, "path", e.Path(), "error", err, "after", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, e.lock.contextError(ctx)
		}
	}
}

// lead runs the body of the loop for one term, and resigns. It returns whether the loop goes on,
// and the final error of a release.
func (e *Election) lead(ctx context.Context, grant *Grant, number int, yield func(*Term, error) bool) (more bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	term := &Term{grant, number, grant.Context(ctx), cancel}
	defer func() { // also after a panic or runtime.Goexit
		_, err = grant.Release().Wait(context.Background())
		if errors.Is(err, ErrNotHeld) || errors.Is(err, ErrClosed) || campaign.IsTemporary(err) {
			err = nil
		}
	}()
	if e.resignOnRevoke {
		go func() {
			select {
			case <-grant.Revoked():
				cancel(ErrRevoked)
			case <-term.work.Done():
			}
		}()
	}
	return yield(term, nil), nil
}

// Resign asks a Singleton to stop its child, to resign and to queue again, at the end. It has no
// effect while the Singleton does not lead.
type Resign = campaign.Resign

// SingletonTerm is the time for which a Singleton leads, for its child. Any goroutine may use it.
type SingletonTerm struct{ term *campaign.Term }

// Token returns the fencing token of the term, which is greater than those of all earlier terms of
// all participants. The child sends it with every write.
func (t *SingletonTerm) Token() Token { return TokenOf(t.term.Granted) }

// Err returns nil while the term lasts, to the knowledge of this process. The child asks it before it
// handles a message: it may have been paused for so long that another participant leads. It looks at
// the clock, so that it returns the loss of the session before the message that stops the child has
// arrived. Afterwards errors.Is finds ErrSessionLost, ErrNodeDeleted or another reason of a loss,
// ErrRevoked, ErrSuspended, or ErrResigned. It does not block, and cannot know of a pause that comes
// right after the call.
func (t *SingletonTerm) Err() error { return t.term.Err() }

// Context returns a context for the work of the child, which ends when the child is to stop: at the
// latest when the term is over. Its cause is the Err of the term, and its own Err looks at the clock.
func (t *SingletonTerm) Context() context.Context { return t.term.Context() }

// Singleton returns the props of an actor that takes part in the election and has one child while
// it leads: of all actors that the processes spawn from such props, at most one has a child. child
// returns the props of the child for a term. Spawn the actor in Config.System:
//
//	props := election.Singleton(func(term *actors.SingletonTerm) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &scheduler{term: term} })
//	})
//	system.Root.Spawn(props)
//
// The child asks term.Err before each message, and sends term.Token with each write.
//
// The lock is released only after the child has terminated. The actor stops the child
//   - at once when the term is lost, with the session or with the node. Another participant may lead
//     before the child has terminated: SingletonTerm.Err tells the child, and the token protects
//     resources from it;
//   - when the actor receives Resign;
//   - when another client asks the leader to resign, with ResignOnRevoke, and when the connection is
//     lost, with Config.StopOnSuspended;
//   - when the actor itself is stopped, or restarted by its supervisor.
//
// After a child that has terminated, also by itself, the actor queues again, at the end. A child
// that shall be the last stops its parent: ctx.Stop(ctx.Parent()). The actor supervises the child
// as every parent does: a child that is restarted stays in its term.
//
// As a Campaign it repeats requests that failed for a time, and outlives the loss of the session.
// After a final error it stops itself, and logs the error unless that is ErrClosed or ErrDraining.
func (e *Election) Singleton(child func(*SingletonTerm) *actor.Props) *actor.Props {
	h := &e.lock
	return campaign.Singleton(&campaign.SingletonConfig{
		Path:            e.Path(),
		Lock:            h.PID,
		System:          h.manager.ActorSystem(),
		Lost:            h.manager.Session.Lost,
		Child:           func(term *campaign.Term) *actor.Props { return child(&SingletonTerm{term}) },
		Data:            e.id,
		ResignOnRevoke:  e.resignOnRevoke,
		StopOnSuspended: h.manager.StopOnSuspended,
		Log:             h.manager.Log,
	})
}
