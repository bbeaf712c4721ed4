package elections

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// shardActor is the child of a partition. It answers its partition, and fails when it is told to.
type shardActor struct {
	group   *shards
	held    *heldShard
	started *bool // of the term: a child that is restarted stays in its term
}

func (a *shardActor) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		if !*a.started {
			a.group.enter(a.held)
		}
		*a.started = true
	case *actor.Stopped:
		a.group.exit(a.held)
	case string:
		switch msg {
		case "fail":
			panic(errFailed)
		case "end":
			ctx.Stop(ctx.Self())
		default:
			ctx.Respond(fmt.Sprint(msg, a.held.Partition()))
		}
	}
}

// Actors share the partitions: each has a child for each partition that it leads, and passes messages on
// to it. A child that terminates is followed by another one, and so is one of an actor that restarts.
func TestPartitionsSingletons(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := newShards(b, 6)
		type member struct {
			locks *actors.Locks
			root  *actor.RootContext
			pid   *actor.PID
		}
		join := func(name string) member {
			system := actor.NewActorSystem()
			b.T.Cleanup(system.Shutdown)
			locks := b.Locks(func(cfg *actors.Config) { cfg.System = system })
			p := locks.Partitions(b.LockPath, g.count)
			pid := system.Root.Spawn(p.Singletons([]byte(name), func(term *actors.PartitionTerm) *actor.Props {
				held := &heldShard{term, locks, locks.Session().Epoch, g.expiredOf(locks)}
				started := new(bool)
				return actor.PropsFromProducer(func() actor.Actor { return &shardActor{g, held, started} })
			}))
			return member{locks, system.Root, pid}
		}
		ask := func(m member, n int) any {
			answer, err := m.root.RequestFuture(m.pid, &actors.ToPartition{Partition: n, Message: "partition "}, time.Second).Result()
			if err != nil { // a child that ends does not answer
				return actors.ErrNoLeader
			}
			return answer
		}
		// serve waits until the members serve n partitions together, each of them one of them.
		serve := func(all ...member) (loads []int) {
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				total := 0
				loads = make([]int, len(all))
				for n := range g.count {
					for i, m := range all {
						switch answer := ask(m, n).(type) {
						case string:
							loads[i]++
							total++
							if answer != fmt.Sprint("partition ", n) {
								b.Errorf("partition %d answers %q", n, answer)
							}
						case error:
							if !errors.Is(answer, actors.ErrNoLeader) {
								b.Error(answer)
							}
						}
					}
				}
				return total == g.count
			}, "the members serve all partitions: %v", &loads)
			return loads
		}
		one := join("one")
		serve(one)
		two := join("two")
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			loads := serve(one, two)
			return loads[0] == 3 && loads[1] == 3
		}, "equal shares")
		for n := range g.count {
			one.root.Send(one.pid, &actors.ToPartition{Partition: n, Message: "end"})
			two.root.Send(two.pid, actors.ToPartition{Partition: n, Message: "fail"})
		}
		serve(one, two)
		locktest.Must(b, one.root.StopFuture(one.pid).Wait())
		serve(two)
		locktest.Must(b, two.root.StopFuture(two.pid).Wait())
	})
}

// slowActor is the child of a partition, which stops slowly.
type slowActor struct {
	group    *shards
	held     *heldShard
	stopping chan<- struct{}
	may      <-chan struct{}
}

func (a *slowActor) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		a.group.enter(a.held)
	case *actor.Stopping:
		a.stopping <- struct{}{}
		<-a.may
	case *actor.Stopped:
		a.group.exit(a.held)
	}
}

// A partition stays with an actor that stops until its child has stopped, however long that takes: the ledger
// finds another member that leads it before. The caller of StopFuture waits for all of it.
func TestPartitionsSingletonsStopSlowly(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := newShards(b, 3)
		system := actor.NewActorSystem()
		b.T.Cleanup(system.Shutdown)
		locks := b.Locks(func(cfg *actors.Config) { cfg.System = system })
		stopping, may, began := make(chan struct{}, g.count), make(chan struct{}), make(chan struct{}, g.count)
		pid := system.Root.Spawn(locks.Partitions(b.LockPath, g.count).Singletons([]byte("slow"), func(term *actors.PartitionTerm) *actor.Props {
			began <- struct{}{}
			held := &heldShard{term, locks, locks.Session().Epoch, g.expiredOf(locks)}
			return actor.PropsFromProducer(func() actor.Actor { return &slowActor{g, held, stopping, may} })
		}))
		for range g.count {
			locktest.Receive(b, began, "a child")
		}
		stopped := system.Root.StopFuture(pid)
		for range g.count {
			locktest.Receive(b, stopping, "a child that stops")
		}
		two := g.join(b.Locks(), "two")
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			for n := range g.count { // the second member waits for each partition
				if len(b.Nodes(b, group.LockPath(b.LockPath, n))) < 2 {
					return false
				}
			}
			return true
		}, "the second member waits")
		if n := two.leads(); n > 0 {
			b.Errorf("the second member leads %d partitions whose children have not stopped", n)
		}
		close(may)
		stopped.Wait()
		g.balanced(two)
		two.leaves()
	})
}
