//go:build unix

package actors_test

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Chaos: six processes work on three locks while processes and servers are paused and
// killed. Each update of a number in the resource server is made of what was read before under the
// same grant, so one that is lost shows.

var chaosTime = flag.Duration("chaos", 0, "how long each run of chaos takes; 0: not at all, or 5s with ACTORLOCK_EXHAUSTIVE=1")

// chaos is one such run.
type chaos struct {
	*testLock
	disturb   func() // something happens to the server
	resources *resourceServer
	paths     []string
	timeout   time.Duration
	team      []*childProcess
	wakers    sync.WaitGroup
	paused    chan struct{} // as many as may be at a time: the others must go on
}

// TestChaosUnclean has processes killed, and paused until their sessions are over: then
// the tokens must keep every update from being lost.
func TestChaosUnclean(t *testing.T) {
	t.Parallel()
	onChaos(t, func(c *chaos) {
		c.run(time.Second, func() {
			i := c.victim()
			if rand.N(5) > 0 {
				c.rest(i, c.timeout/2+rand.N(2*c.timeout))
				return
			}
			c.team[i].kill()
			c.team[i] = c.hire()
		})
		c.resources.check(c, false)
	})
}

// TestChaosClean has processes paused for less than their sessions last, and servers
// that fail for less: the locks alone must keep the processes from each other.
func TestChaosClean(t *testing.T) {
	t.Parallel()
	onChaos(t, func(c *chaos) {
		c.run(calm, func() { c.rest(c.victim(), rand.N(400*time.Millisecond)) })
		c.resources.check(c, true)
	})
}

// onChaos runs f on each kind of server.
func onChaos(t *testing.T, f func(c *chaos)) {
	if *chaosTime == 0 && !zktest.Exhaustive() {
		t.Skip("runs with -chaos 5s, and with ACTORLOCK_EXHAUSTIVE=1")
	}
	for name, start := range map[string]func(t *testing.T) (s *zktest.Server, disturb func()){
		"embedded": func(t *testing.T) (*zktest.Server, func()) {
			s := zktest.Embedded(t)
			return s, func() {
				s.Freeze(t)
				<-time.After(rand.N(500 * time.Millisecond))
				s.Thaw(t)
			}
		},
		"zookeeper": func(t *testing.T) (*zktest.Server, func()) {
			s := zktest.Own(t)
			return s, func() { restart(t, s) }
		},
		"ensemble": func(t *testing.T) (*zktest.Server, func()) {
			zktest.OneRunIn(t, 8)
			s := zktest.Ensemble(t, 3)
			return s, func() { restart(t, s.Members()[rand.N(3)]) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, disturb := start(t)
			c := &chaos{testLock: lockOn(t, s), disturb: disturb,
				resources: newResourceServer(t), paused: make(chan struct{}, 2)}
			for _, name := range []string{"-a", "-b", "-c"} {
				c.paths = append(c.paths, c.path+name)
			}
			f(c)
			for _, c.path = range c.paths {
				c.clean()
			}
		})
	}
}

func restart(t *testing.T, s *zktest.Server) {
	s.Stop(t)
	<-time.After(rand.N(300 * time.Millisecond))
	s.Start(t)
}

// hire starts a process that works.
func (c *chaos) hire() *childProcess {
	c.Helper()
	p := startProcess(c, c.Addr(), c.timeout, c.resources.addr())
	p.tell("work %s", strings.Join(c.paths, " "))
	return p
}

// victim chooses a process, mostly one that holds a lock.
func (c *chaos) victim() int {
	holders := c.resources.holders()
	for range 100 { // all processes may wait for one that is paused
		if len(holders) > 0 {
			break
		}
		<-time.After(2 * time.Millisecond)
		holders = c.resources.holders()
	}
	if rand.N(4) == 0 || len(holders) == 0 {
		return rand.N(len(c.team))
	}
	pid := holders[rand.N(len(holders))]
	return max(0, slices.IndexFunc(c.team, func(p *childProcess) bool { return p.cmd.Process.Pid == pid }))
}

// rest pauses a process for a time. It may be killed meanwhile.
func (c *chaos) rest(i int, pause time.Duration) {
	select {
	case c.paused <- struct{}{}:
	default:
		return
	}
	p := c.team[i].cmd.Process
	p.Signal(syscall.SIGSTOP)
	c.wakers.Go(func() {
		<-time.After(pause)
		p.Signal(syscall.SIGCONT)
		<-c.paused
	})
}

// run has the processes work while strike happens again and again, and now and then
// something to the server.
func (c *chaos) run(timeout time.Duration, strike func()) {
	c.Helper()
	c.timeout = timeout
	for range 6 {
		c.team = append(c.team, c.hire())
	}
	strikes := 0
	for over := time.After(cmp.Or(*chaosTime, 5*time.Second)); ; strikes++ {
		select {
		case <-over:
			c.Logf("%d strikes", strikes)
			c.wakers.Wait()
			for _, p := range c.team {
				p.tell("rest")
			}
			for _, p := range c.team {
				p.hear("rested")
				p.leave()
			}
			return
		case <-time.After(rand.N(200 * time.Millisecond)):
			if strikes%8 == 4 {
				c.disturb()
			} else {
				strike()
			}
		}
	}
}
