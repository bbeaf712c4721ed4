package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Singletons of three processes lead in turn while processes are cut off, the server is killed and
// started again, and requests fail. Their children end, fail and are stopped; singletons resign,
// and are stopped and spawned again. No child starts before all others were told to stop, or have
// ended, tokens grow, and after the last fault each singleton leads again.
func TestHistoryOfSingletons(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { bubble(t, historyOfSingletons) })
	}
}

// singletonChildren counts the children of a history.
type singletonChildren struct {
	*ledger
	mu      sync.Mutex
	started map[int]int // by singleton
}

// child holds from its start until it is told to stop. One that has failed starts again.
type child struct {
	pid   *actor.PID
	token actors.Token
}

func (c child) Token() actors.Token { return c.token }
func (child) Err() error            { return nil }

func (c *singletonChildren) starts(singleton int, child child) {
	c.enter(child.pid.String(), child, whole(election))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started[singleton]++
}

// fewest is how often the singleton has led that did so least often.
func (c *singletonChildren) fewest(singletons int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.started[0]
	for i := range singletons {
		n = min(n, c.started[i])
	}
	return n
}

func historyOfSingletons(v *virtual) {
	system := actor.NewActorSystem(quietly...)
	defer system.Shutdown()
	c := &singletonChildren{ledger: newLedger(v), started: map[int]int{}}
	var processes []dialingProcess
	var all []*actor.PID
	var props []*actor.Props
	for i := range 3 {
		p := v.process(func(cfg *actors.Config) { cfg.System, cfg.StopOnSuspended = system, i == 2 })
		processes = append(processes, p)
		props = append(props, p.locks.Election("/lock").Singleton(func(token actors.Token) *actor.Props { return c.props(i, token) }))
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
		processes[rand.N(len(processes))].outage(v)
		fault.Remove()
		<-time.After(rand.N(2 * session))
		switch i := rand.N(len(all)); rand.N(4) {
		case 0:
			system.Root.Send(all[i], actors.Resign{})
		case 1:
			must(v, system.Root.StopFuture(all[i]).Wait())
			all[i] = system.Root.Spawn(props[i])
		}
	}
	c.mu.Lock()
	total := c.count(election)
	clear(c.started)
	c.mu.Unlock()
	zktest.Eventually(v, time.Hour, func() bool { return c.fewest(len(all)) > 1 }, "each singleton leads after the faults")
	for _, self := range all {
		system.Root.Stop(self)
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	v.Logf("%d terms among faults", total)
}

// props are of a child that plays for a while, and then ends, fails or goes on. It takes a while to stop.
func (c *singletonChildren) props(singleton int, token actors.Token) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		system, self := ctx.ActorSystem(), child{ctx.Self(), token}
		wake := func() { time.AfterFunc(rand.N(4*time.Second), func() { system.Root.Send(self.pid, "go on") }) }
		switch ctx.Message().(type) {
		case *actor.Started:
			c.starts(singleton, self)
			wake()
		case *actor.Stopping:
			c.leave(self)
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
