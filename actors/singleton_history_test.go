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

// singletonChildren has the children of a history.
type singletonChildren struct {
	t testing.TB

	mu      sync.Mutex
	playing map[*actor.PID]actors.Token // started, and not told to stop
	newest  actors.Token
	started map[int]int // by singleton
}

func (c *singletonChildren) starts(self *actor.PID, singleton int, token actors.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, with := range c.playing {
		if other != self {
			c.t.Errorf("a child with token %v goes on beside that with %v", with, token)
		}
	}
	if again := c.playing[self] == token; !again && token.Compare(c.newest) <= 0 { // a failed child is restarted
		c.t.Errorf("token %v after %v", token, c.newest)
	}
	c.playing[self], c.newest = token, token
	c.started[singleton]++
}

func (c *singletonChildren) stops(self *actor.PID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.playing, self)
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
	c := &singletonChildren{t: v, playing: map[*actor.PID]actors.Token{}, started: map[int]int{}}
	var branches []branch
	var all []*actor.PID
	var props []*actor.Props
	for i := range 3 {
		n := &dialer{dial: v.Dial}
		locks := v.locks(func(cfg *actors.Config) {
			cfg.Dial, cfg.System, cfg.StopOnSuspended = n.Dial, system, i == 2
		})
		branches = append(branches, branch{n, locks})
		props = append(props, locks.Election("/lock").Singleton(func(token actors.Token) *actor.Props { return c.child(i, token) }))
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
		branches[rand.N(len(branches))].outage(v)
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
	total := 0
	for _, n := range c.started {
		total += n
	}
	clear(c.started)
	c.mu.Unlock()
	zktest.Eventually(v, time.Hour, func() bool { return c.fewest(len(all)) > 1 }, "each singleton leads after the faults")
	for _, self := range all {
		system.Root.Stop(self)
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	v.Logf("%d terms among faults", total)
}

// wake sends the child a message after a while.
func (c *singletonChildren) wake(child actor.Context) {
	system, self := child.ActorSystem(), child.Self()
	time.AfterFunc(rand.N(4*time.Second), func() { system.Root.Send(self, "go on") })
}

// child plays for a while, and then ends, fails or goes on. It takes a while to stop.
func (c *singletonChildren) child(singleton int, token actors.Token) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			c.starts(ctx.Self(), singleton, token)
			c.wake(ctx)
		case *actor.Stopping:
			c.stops(ctx.Self())
			<-time.After(rand.N(time.Second))
		case string:
			switch rand.N(3) {
			case 0:
				panic("the child has failed")
			case 1:
				ctx.Stop(ctx.Self())
			default:
				c.wake(ctx)
			}
		}
	})
}
