//go:build unix

package failures

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

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Six processes work on three locks while processes and servers are paused and killed. Each update
// of a number in the resource server is computed from the number that was read before under the
// same grant, so a lost update shows. The processes also report when they believe in a grant, and no
// two may at a time.

var chaosTime = flag.Duration("chaos", 0, "how long each run of chaos takes; 0: not at all, or 5s with ACTORLOCK_EXHAUSTIVE=1")

// chaos is one such run.
type chaos struct {
	*locktest.Fixture
	failServer     func()
	resources      *resourceServer
	paths          []string
	sessionTimeout time.Duration
	lockServers    []*lockServer // of most processes; none: all have ZooKeeper
	processes      []*locktest.ChildProcess
	resuming       sync.WaitGroup // of the goroutines that resume paused processes
	paused         chan struct{}  // has an element for each paused process, and room for as many as may be paused at a time
}

// TestChaosUnclean kills processes, and pauses them for longer than their sessions last. No update
// is lost then, because of the tokens. With three servers, clients of Curator and kazoo take part.
func TestChaosUnclean(t *testing.T) {
	t.Parallel()
	onChaos(t, func(c *chaos) {
		stopOthers := func() {}
		if len(c.Members()) > 0 {
			stopOthers = c.contendOthers()
		}
		c.run(time.Second, func() {
			i := c.anyProcess()
			if rand.N(5) > 0 {
				c.pause(i, c.sessionTimeout/2+rand.N(2*c.sessionTimeout))
				return
			}
			c.processes[i].Kill()
			c.processes[i] = c.start()
		})
		stopOthers()
		c.resources.check(c, false)
	})
}

// TestChaosClean pauses processes, and stops servers, for less than the sessions last. No grant is
// lost then, and the locks alone exclude.
func TestChaosClean(t *testing.T) {
	t.Parallel()
	onChaos(t, func(c *chaos) {
		c.run(locktest.LongSession, func() { c.pause(c.anyProcess(), rand.N(400*time.Millisecond)) })
		c.resources.check(c, true)
	})
}

// TestChaosLockServers has most of the processes get their locks of two lock servers, which are
// paused and killed, too. No update is lost, because of the tokens.
func TestChaosLockServers(t *testing.T) {
	t.Parallel()
	onChaos(t, func(c *chaos) {
		c.sessionTimeout = 2 * time.Second
		c.lockServers = []*lockServer{c.startLockServer("127.0.0.1:0"), c.startLockServer("127.0.0.1:0")}
		c.failServer = c.failLockServer
		c.run(c.sessionTimeout, func() {
			i := c.anyProcess()
			if rand.N(5) > 0 {
				c.pause(i, c.sessionTimeout/2+rand.N(2*c.sessionTimeout))
				return
			}
			c.processes[i].Kill()
			c.processes[i] = c.start()
		})
		c.resources.check(c, false)
		for _, s := range c.lockServers {
			s.process.Exit()
		}
	})
}

// lockServer is a process that serves its locks.
type lockServer struct {
	process *locktest.ChildProcess
	address string
}

// startLockServer starts a lock server. It repeats that while the address is in use by a
// connection of the last process there.
func (c *chaos) startLockServer(address string) *lockServer {
	c.Helper()
	p := locktest.StartProcess(c, c.Addr(), c.sessionTimeout, "")
	s := &lockServer{process: p}
	zktest.Eventually(c, zktest.TimeLimit, func() bool {
		p.Send("serve %s", address)
		var is bool
		s.address, is = strings.CutPrefix(p.NextLine(), "serving ")
		return is
	}, "a lock server at %s", address)
	return s
}

// failLockServer pauses a lock server, or kills it and starts another at its address.
func (c *chaos) failLockServer() {
	i := rand.N(len(c.lockServers))
	s := c.lockServers[i]
	if rand.N(2) == 0 {
		p := s.process.Cmd.Process
		p.Signal(syscall.SIGSTOP)
		<-time.After(rand.N(2 * c.sessionTimeout))
		p.Signal(syscall.SIGCONT)
		return
	}
	s.process.Kill()
	c.lockServers[i] = c.startLockServer(s.address)
}

// onChaos runs f on each kind of server.
func onChaos(t *testing.T, f func(c *chaos)) {
	if *chaosTime == 0 && !zktest.Exhaustive() {
		t.Skip("runs with -chaos 5s, and with ACTORLOCK_EXHAUSTIVE=1")
	}
	for name, start := range map[string]func(t *testing.T) (s *zktest.Server, fail func()){
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
			s := zktest.Ensemble(t, 3, zktest.Links())
			return s, func() { failOneOf(t, s.Members()) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fail := start(t)
			c := &chaos{Fixture: locktest.NewFixture(t, s), failServer: fail, resources: newResourceServer(t), paused: make(chan struct{}, 2)}
			for _, name := range []string{"-a", "-b", "-c"} {
				c.paths = append(c.paths, c.LockPath+name)
			}
			f(c)
			for _, c.LockPath = range c.paths {
				c.Clean()
			}
		})
	}
}

func restart(t *testing.T, s *zktest.Server) {
	s.Stop(t)
	<-time.After(rand.N(300 * time.Millisecond))
	s.Start(t)
}

// failOneOf kills one member of an ensemble, pauses it, or cuts it off from the others but not from its clients. In a long
// run some faults last for longer than it takes members to give each other up.
func failOneOf(t *testing.T, members []*zktest.Server) {
	m, length := members[rand.N(len(members))], rand.N(time.Second)
	if *chaosTime > 10*time.Second && rand.N(3) == 0 {
		length = rand.N(6 * time.Second)
	}
	switch rand.N(3) {
	case 0:
		m.Freeze(t)
		<-time.After(length)
		m.Thaw(t)
	case 1:
		m.Isolate(t, true)
		<-time.After(length)
		m.Isolate(t, false)
	default:
		m.Stop(t)
		<-time.After(length)
		m.Start(t)
	}
}

// start starts a process that works.
func (c *chaos) start() *locktest.ChildProcess {
	c.Helper()
	address := c.Addr()
	if len(c.lockServers) > 0 && rand.N(4) > 0 {
		all := []string{c.lockServers[0].address, c.lockServers[1].address}
		if rand.N(2) == 0 {
			slices.Reverse(all)
		}
		address = locktest.LockServers + strings.Join(all, ",")
	}
	p := locktest.StartProcess(c, address, c.sessionTimeout, c.resources.addr())
	p.Send("work %s", strings.Join(c.paths, " "))
	return p
}

// anyProcess returns the index of a random process, mostly of one that holds a lock.
func (c *chaos) anyProcess() int {
	holders := c.resources.holders()
	for range 100 { // all processes may wait for a paused one
		if len(holders) > 0 {
			break
		}
		<-time.After(2 * time.Millisecond)
		holders = c.resources.holders()
	}
	if rand.N(4) == 0 || len(holders) == 0 {
		return rand.N(len(c.processes))
	}
	pid := holders[rand.N(len(holders))]
	return max(0, slices.IndexFunc(c.processes, func(p *locktest.ChildProcess) bool { return p.Cmd.Process.Pid == pid }))
}

// pause pauses a process, unless as many as may be are paused. The process may be killed meanwhile.
func (c *chaos) pause(i int, length time.Duration) {
	select {
	case c.paused <- struct{}{}:
	default:
		return
	}
	p := c.processes[i].Cmd.Process
	p.Signal(syscall.SIGSTOP)
	c.resuming.Go(func() {
		<-time.After(length)
		p.Signal(syscall.SIGCONT)
		<-c.paused
	})
}

// run has six processes work while one fault follows another: one in eight is the server's, and the
// others are a process's.
func (c *chaos) run(sessionTimeout time.Duration, failProcess func()) {
	c.Helper()
	c.sessionTimeout = sessionTimeout
	for range 6 {
		c.processes = append(c.processes, c.start())
	}
	faults := 0
	for over := time.After(cmp.Or(*chaosTime, 5*time.Second)); ; faults++ {
		select {
		case <-over:
			c.Logf("%d faults", faults)
			c.resuming.Wait()
			for _, p := range c.processes {
				p.Send("stop")
			}
			for _, p := range c.processes {
				p.Expect("stopped")
				p.Exit()
			}
			return
		case <-time.After(rand.N(200 * time.Millisecond)):
			if faults%8 == 4 {
				c.failServer()
			} else {
				failProcess()
			}
		}
	}
}
