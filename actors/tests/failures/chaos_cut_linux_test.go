package failures

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// cutChaos is chaos in a network whose links are cut.
type cutChaos struct {
	*chaos
	network          *ethernet
	clients, servers []host // of the processes and of the lock servers
	busy             string // the lock that all processes request all the time
	broken           atomic.Int64
}

// TestChaosCutLinks has processes in network namespaces get their locks of two lock servers, or of
// ZooKeeper, beside a client of Curator. One direction of a link is cut, or both, and then goes on or has
// its connections broken, while the processes send requests and cancels all the time; processes and lock
// servers are paused and killed. No two of them believe in a lock at a time, and all get locks once
// the network is whole.
func TestChaosCutLinks(t *testing.T) {
	t.Parallel()
	if *chaosTime == 0 && !zktest.Exhaustive() {
		t.Skip("runs with -chaos 20s, and with ACTORLOCK_EXHAUSTIVE=1")
	}
	length := cmp.Or(*chaosTime, 15*time.Second)
	if !inOwnNetwork(t, "-chaos", length.String(), "-test.timeout", (length + 2*zktest.TimeLimit).String()) {
		return
	}
	n := newNetwork(t)
	s := zktest.Own(t, zktest.Setting("clientPortAddress", "0.0.0.0")) // in this network
	c := &cutChaos{chaos: &chaos{Fixture: locktest.NewFixture(t, s), sessionTimeout: 4 * time.Second, paused: make(chan struct{}, 2),
		resources: newResourceServerAt(t, "unix", filepath.Join(t.TempDir(), "s"))}, network: n}
	for _, name := range []string{"-a", "-b", "-c"} {
		c.paths = append(c.paths, c.LockPath+name)
	}
	c.busy = c.LockPath + "-busy"
	for i := range 2 {
		c.servers = append(c.servers, n.add(fmt.Sprintf("server%d", i)))
		c.lockServers = append(c.lockServers, c.startLockServer(i))
	}
	for i := range 5 {
		c.clients = append(c.clients, n.add(fmt.Sprintf("client%d", i)))
	}
	for i := range c.clients {
		c.processes = append(c.processes, c.startClient(i))
	}
	curator := interop.Curator(t, c.Addr(), interop.SessionTimeout(time.Minute))
	stopCurator := c.contend(curatorID, curator.Peer, curator.Mutex)
	zktest.Eventually(c, zktest.TimeLimit, func() bool {
		return n.breakConnections(c.clients[0], c.servers[0])+n.breakConnections(c.clients[0], c.servers[1]) > 0
	}, "ss -K breaks a connection of a client with a lock server")
	faults := 0
	for over := time.After(*chaosTime); ; faults++ {
		select {
		case <-over:
		case <-time.After(rand.N(1200 * time.Millisecond)):
			c.fail()
			continue
		}
		break
	}
	c.resuming.Wait() // all links are whole
	t.Logf("%d faults, %d connections broken", faults, c.broken.Load())
	c.expectGrants()
	t.Log("all are granted locks again")
	stopCurator()
	for _, p := range c.processes {
		p.Send("stop")
	}
	for _, p := range c.processes {
		p.Expect("stopped")
		p.Exit()
	}
	c.Log("all have stopped")
	c.resources.check(c, false)
	for _, s := range c.lockServers {
		s.process.Exit()
	}
	for _, c.LockPath = range append(c.paths, c.busy) {
		c.Clean()
	}
}

// zooKeeper returns the address of ZooKeeper for the members of the network.
func (c *cutChaos) zooKeeper() string {
	_, port, _ := net.SplitHostPort(c.Addr())
	return net.JoinHostPort(hub.address, port)
}

func (c *cutChaos) startLockServer(i int) *lockServer {
	c.Helper()
	h := c.servers[i]
	p := locktest.StartProcessBy(c, h.command(), c.zooKeeper(), c.sessionTimeout, "")
	s := &lockServer{process: p, address: net.JoinHostPort(h.address, "7400")}
	p.Send("serve %s", s.address)
	p.Expect("serving")
	return s
}

// startClient starts a process that works: the last one without a lock server.
func (c *cutChaos) startClient(i int) *locktest.ChildProcess {
	c.Helper()
	address := c.zooKeeper()
	if i < len(c.clients)-1 {
		address = locktest.LockServers + strings.Join([]string{c.lockServers[i%2].address, c.lockServers[1-i%2].address}, ",")
	}
	p := locktest.StartProcessBy(c, c.clients[i].command(), address, c.sessionTimeout, c.resources.addr())
	p.Send("linger %s %s", c.busy, strings.Join(c.paths, " "))
	return p
}

// fail cuts links for a time, or pauses or kills a process or a lock server. A process that is cut
// off from all servers for long loses its grants.
func (c *cutChaos) fail() {
	i, j, length := c.anyProcess(), rand.N(len(c.servers)), time.Second+rand.N(7*time.Second)
	client, server, others := c.clients[i], c.servers[j], c.servers
	if i == len(c.clients)-1 {
		others = []host{hub}
	} else if rand.N(4) == 0 {
		others = []host{server}
	}
	switch what := rand.N(12); what {
	case 0, 1, 2, 3, 4, 5, 6:
		breaks := rand.N(2) == 0
		if breaks { // soon enough that the lease goes on
			length = rand.N(time.Second)
		}
		for _, other := range others {
			if what <= 4 {
				c.cut(client, other, length)
			}
			if what >= 3 {
				c.cut(other, client, length)
			}
			if breaks {
				c.resuming.Go(func() {
					<-time.After(length / 2) // what is under way by then does not arrive
					c.broken.Add(int64(c.network.breakConnections(client, other)))
				})
			}
		}
	case 7:
		c.cut(server, hub, length)
	case 8:
		c.cut(hub, server, length)
	case 9, 10:
		c.pause(i, length)
	case 11:
		c.killAnother(i, j)
	}
}

// cut cuts one direction of a link for a time.
func (c *cutChaos) cut(from, to host, length time.Duration) {
	c.network.cut(from, to)
	c.resuming.Go(func() {
		<-time.After(length)
		c.network.heal(from, to)
	})
}

// killAnother kills a process, or kills or pauses a lock server.
func (c *cutChaos) killAnother(i, j int) {
	switch s := c.lockServers[j]; rand.N(3) {
	case 0:
		c.killAndStart(c.processes[i], c.clients[i], func() { c.processes[i] = c.startClient(i) })
	case 1:
		c.killAndStart(s.process, c.servers[j], func() { c.lockServers[j] = c.startLockServer(j) })
	case 2:
		s.process.Cmd.Process.Signal(syscall.SIGSTOP)
		<-time.After(rand.N(c.sessionTimeout))
		s.process.Cmd.Process.Signal(syscall.SIGCONT)
	}
}

// killAndStart kills a process, and starts another one once its host reaches all.
func (c *cutChaos) killAndStart(p *locktest.ChildProcess, at host, start func()) {
	p.Kill()
	for _, other := range append(append([]host{hub}, c.servers...), c.clients...) {
		if other != at {
			c.network.heal(at, other)
			c.network.heal(other, at)
		}
	}
	start()
}

// expectGrants waits until each process, and Curator at each lock, has been granted a lock from now
// on.
func (c *cutChaos) expectGrants() {
	c.Helper()
	before, ids := c.resources.granted(), []int64{curatorID, curatorID - 1, curatorID - 2}
	for _, p := range c.processes {
		ids = append(ids, int64(p.Cmd.Process.Pid))
	}
	for _, id := range ids {
		zktest.Eventually(c, zktest.TimeLimit, func() bool { return c.resources.granted()[id] > before[id] }, "process %d is granted a lock", id)
	}
}
