package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
)

// ToPartition is a message to the actor of Singletons for its child of a partition, which gets Message,
// with the sender of the ToPartition as its sender.
type ToPartition struct {
	Partition int
	Message   any
}

// NotLed is the answer of the actor of Singletons to a ToPartition for a partition that it has no child
// for. Partitions.Leader says who leads it, unless that has just changed.
type NotLed struct {
	Path      string
	Partition int
}

// Error implements error. errors.Is finds ErrNoLeader.
func (e *NotLed) Error() string {
	return fmt.Sprintf("partition %d of %s is not led here", e.Partition, e.Path)
}

// Unwrap returns ErrNoLeader.
func (e *NotLed) Unwrap() error { return ErrNoLeader }

// Singletons returns the props of an actor that joins the group with the data, as Join does, and has one
// child for each partition that it leads: of all actors that the processes spawn from such props, at most
// one has a child for a partition. child returns the props of the child for a term. Spawn the actor in
// Config.System:
//
//	props := shards.Singletons(data, func(term *actors.PartitionTerm) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &shard{term: term} })
//	})
//	pid := system.Root.Spawn(props)
//	system.Root.Send(pid, &actors.ToPartition{Partition: shards.Of(key), Message: order})
//
// The child asks term.Err before each message, and sends term.Token with each write. A ToPartition reaches
// the child of its partition; without one the sender gets a NotLed. How messages reach the process that
// leads is up to the program.
//
// A partition is given away only after its child has terminated. The actor stops a child when the context
// of its term ends, and all children when it is itself stopped, or restarted by its supervisor. A child
// that terminates by itself resigns, and the member campaigns again after a pause. The actor supervises
// its children as every parent does: a child that is restarted stays in its term.
//
// The actor stops itself after an error of Join, which the log has unless it is ErrClosed or ErrDraining.
func (p *Partitions) Singletons(data []byte, child func(*PartitionTerm) *actor.Props) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &partitionSingletons{partitions: p, data: data, props: child, children: map[int]partitionChild{}}
	})
}

// partitionSingletons is the actor of Singletons. The goroutine of each term waits until its child has
// terminated, and so gives the partition away.
type partitionSingletons struct {
	partitions *Partitions
	data       []byte
	props      func(*PartitionTerm) *actor.Props
	run        *singletonsRun
	children   map[int]partitionChild // by partition
	ending     bool                   // protoactor stops or restarts the actor, with its children
}

// singletonsRun is one Join of the actor. A restarted actor has another one.
type singletonsRun struct {
	leave context.CancelFunc // ends the Join
	end   context.CancelFunc // has the functions of all terms return: the actor has no children any more, and spawns none
}

type partitionChild struct {
	pid  *actor.PID
	term *PartitionTerm
	over chan struct{} // closed when the child has terminated
}

// Messages of the goroutines of a run to the actor.
type (
	partitionBegan struct {
		run  *singletonsRun
		term *PartitionTerm
		over chan struct{}
	}
	partitionEnded struct{ term *PartitionTerm }
	partitionsLeft struct {
		run *singletonsRun
		err error
	}
)

// Receive implements actor.Actor.
func (a *partitionSingletons) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		a.join(ctx)
	case *actor.Stopping, *actor.Restarting:
		a.ending = true
		a.run.leave()
		if len(a.children) == 0 {
			a.run.end()
		}
	case *actor.Terminated:
		a.childEnded(msg.GetWho())
	case partitionBegan:
		a.begin(ctx, msg)
	case partitionEnded:
		if c, is := a.children[msg.term.partition]; is && c.term == msg.term {
			ctx.Stop(c.pid)
		}
	case partitionsLeft:
		if msg.run == a.run && !a.ending {
			a.giveUp(ctx, msg.err)
		}
	case ToPartition:
		a.forward(ctx, &msg)
	case *ToPartition:
		a.forward(ctx, msg)
	}
}

// join joins the group in a goroutine of its own.
func (a *partitionSingletons) join(ctx actor.Context) {
	joined, leave := context.WithCancel(context.Background())
	gone, end := context.WithCancel(context.Background())
	run := &singletonsRun{leave, end}
	a.run = run
	root, self := ctx.ActorSystem().Root, ctx.Self()
	if ctx.ActorSystem() != a.partitions.locks.manager.ActorSystem() {
		root.Send(self, partitionsLeft{run, check.Invalid("singletons in an actor system other than Config.System")})
		return
	}
	go func() {
		err := a.partitions.join(joined, self.Id, a.data, func(term *PartitionTerm) {
			over := make(chan struct{})
			root.Send(self, partitionBegan{run, term, over})
			defer context.AfterFunc(term.Context(), func() { root.Send(self, partitionEnded{term}) })()
			select {
			case <-over:
			case <-gone.Done():
			}
		})
		if joined.Err() == nil {
			root.Send(self, partitionsLeft{run, err})
		}
		leave()
	}()
}

// begin spawns the child of a term.
func (a *partitionSingletons) begin(ctx actor.Context, msg partitionBegan) {
	if msg.run != a.run || a.ending {
		close(msg.over)
		return
	}
	a.children[msg.term.partition] = partitionChild{ctx.Spawn(a.props(msg.term)), msg.term, msg.over}
}

func (a *partitionSingletons) childEnded(who *actor.PID) {
	for n, c := range a.children {
		if c.pid.Equal(who) {
			delete(a.children, n)
			close(c.over)
		}
	}
	if a.ending && len(a.children) == 0 {
		a.run.end()
	}
}

func (a *partitionSingletons) forward(ctx actor.Context, msg *ToPartition) {
	c, is := a.children[msg.Partition]
	switch {
	case is && ctx.Sender() != nil:
		ctx.RequestWithCustomSender(c.pid, msg.Message, ctx.Sender())
	case is:
		ctx.Send(c.pid, msg.Message)
	case ctx.Sender() != nil:
		ctx.Respond(&NotLed{a.partitions.path, msg.Partition})
	}
}

func (a *partitionSingletons) giveUp(ctx actor.Context, err error) {
	if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrDraining) {
		a.partitions.locks.manager.Log.Error("actor cannot be a member of the group and stops", "path", a.partitions.path,
			"pid", ctx.Self().Address+"/"+ctx.Self().Id, "error", err, "do", "mend the cause, and spawn the actor again")
	}
	ctx.Stop(ctx.Self())
}
