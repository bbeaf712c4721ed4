package elections

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Singletons of three processes lead in turn while processes are cut off, the server is killed and
// started again, and requests fail. Their children end, fail and are stopped; singletons resign,
// and are stopped and spawned again. No child starts before all others begin to stop or have ended,
// tokens grow, and after the last fault each singleton leads again.
func TestHistoryOfSingletons(t *testing.T) {
	t.Parallel()
	for i := range sample.Size(2, 5) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { locktest.Bubble(t, historyOfSingletons) })
	}
}

// randomChild holds from its start until it is stopped. A child that has failed starts again.
type randomChild struct {
	pid   *actor.PID
	token actors.Token
}

func (c randomChild) Token() actors.Token { return c.token }
func (randomChild) Err() error            { return nil }

func historyOfSingletons(v *locktest.Virtual) {
	system := actor.NewActorSystem(locktest.WithoutLog...)
	defer system.Shutdown()
	l := locktest.NewLedger(v)
	var processes []locktest.Process
	var names []string
	var all []*actor.PID
	var props []*actor.Props
	for i := range 3 {
		p, name := v.Process(func(cfg *actors.Config) { cfg.System, cfg.StopOnSuspended = system, i == 2 }), fmt.Sprint("singleton ", i)
		processes, names = append(processes, p), append(names, name)
		props = append(props, p.Locks.Election("/lock").Singleton(func(term *actors.SingletonTerm) *actor.Props { return newRandomChild(l, name, term) }))
		all = append(all, system.Root.Spawn(props[i]))
	}
	defer func() {
		for _, self := range all {
			system.Root.StopFuture(self).Wait()
		}
		<-time.After(time.Second) // for the goroutines that count dead letters
	}()
	for range 40 {
		fault := v.Inject(campaignFaults[rand.N(len(campaignFaults))])
		processes[rand.N(len(processes))].Outage(v)
		fault.Remove()
		<-time.After(rand.N(2 * locktest.SessionTimeout))
		switch i := rand.N(len(all)); rand.N(4) {
		case 0:
			system.Root.Send(all[i], actors.Resign{})
		case 1:
			locktest.Must(v, system.Root.StopFuture(all[i]).Wait())
			all[i] = system.Root.Spawn(props[i])
		}
	}
	faulty := l.Count(locktest.Election)
	l.WaitTerms(2, names...)
	for _, self := range all {
		system.Root.Stop(self)
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	v.Logf("%d terms among faults", faulty)
}

// newRandomChild returns the props of a child that works for a while, and then ends, fails or goes on.
// The child takes a while to stop.
func newRandomChild(l *locktest.Ledger, singleton string, term *actors.SingletonTerm) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		system, self := ctx.ActorSystem(), randomChild{ctx.Self(), term.Token()}
		wake := func() { time.AfterFunc(rand.N(4*time.Second), func() { system.Root.Send(self.pid, "go on") }) }
		switch ctx.Message().(type) {
		case *actor.Started:
			l.Enter(self.pid.String(), self, locktest.Whole(locktest.Election))
			l.CountTerm(singleton)
			wake()
		case *actor.Stopping:
			l.Leave(self)
			<-time.After(rand.N(time.Second))
		case string:
			switch rand.N(3) {
			case 0:
				panic("the child has failed")
			case 1:
				ctx.Stop(ctx.Self())
			default:
				wake()
			}
		}
	})
}
