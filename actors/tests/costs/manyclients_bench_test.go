//go:build unix

package costs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var clients = flag.Int("clients", 1000, "how many clients BenchmarkManyClients has, and sessions BenchmarkManySessions; 10000 need 10,100 open files in each process")

// BenchmarkManyClients has many clients of one lock server, each with a lock of its own, and a
// hundred of another process that hold their locks throughout. It reports, in seconds, how long they
// take to come, to resume broken streams, and to come back after leases that have ended meanwhile,
// all at one time; the memory of the lock server for each; and the part of one core that it takes
// for clients that only hold.
func BenchmarkManyClients(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *zktest.Server{
		"embedded":  func(t testing.TB) *zktest.Server { return zktest.Embedded(t) },
		"zookeeper": func(t testing.TB) *zktest.Server { return zktest.Real(t) },
	} {
		b.Run(name, func(b *testing.B) {
			s := start(b)
			for b.Loop() {
				measureClients(b, s.Addr(), s.Path(b))
			}
		})
	}
}

const (
	steadyClients = 100
	heldFor       = 30 * time.Second // while the keep-alives are measured
)

func measureClients(b *testing.B, zk, path string) {
	const timeout = 40 * time.Second
	server := locktest.StartProcess(b, zk, timeout, "")
	server.Send("serve 127.0.0.1:0")
	address := locktest.LockServers + server.Expect("serving")
	resources := func() (cpu, bytes float64) {
		server.Send("resources")
		fmt.Sscan(server.Expect("resources"), &cpu, &bytes)
		return cpu, bytes
	}
	seconds := func(p *locktest.ChildProcess, command, answer string) (took float64) {
		p.Send("%s", command)
		fmt.Sscan(p.Expect(answer), &took)
		return took
	}

	steady := locktest.StartProcess(b, address, timeout, "")
	seconds(steady, fmt.Sprintf("clients %d %s/steady", steadyClients, path), "all hold")
	_, before := resources()
	many := locktest.StartProcess(b, address, timeout, "")
	b.ReportMetric(seconds(many, fmt.Sprintf("clients %d %s/many", *clients, path), "all hold"), "s-come")
	_, after := resources()
	b.ReportMetric((after-before)/float64(*clients), "B/client")

	cpu, _ := resources()
	<-time.After(heldFor)
	later, _ := resources()
	b.ReportMetric((later-cpu)/heldFor.Seconds(), "cores")

	b.ReportMetric(seconds(many, "away 0s", "all hold"), "s-resume")
	b.ReportMetric(seconds(many, "away 45s", "all hold"), "s-return")
	steady.Send("stop")
	if lost := steady.Expect("lost"); lost != "0" {
		b.Errorf("%s of %d clients that had nothing to do with it have lost their locks", lost, steadyClients)
	}
	steady.Expect("stopped")
	many.Send("stop")
	b.Logf("%s grants were lost by those that came back", many.Expect("lost"))
	many.Expect("stopped")
	server.Exit()
}

// ---- the programs in the processes

func init() {
	processCommands["resources"] = resources
	processCommands["clients"] = holdMany
	processCommands["away"] = goAway
}

// resources prints the seconds of processor time that the process has used, and the bytes of its
// heap and its stacks.
func resources(p *locktest.Program, _ string) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		p.Print("%v", err)
		return
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	p.Print("resources %f %f", cpu.Seconds(), heap())
}

// manyClients are clients of a lock server that hold a lock each. They share an actor system, as
// the memory of this process is not what is measured.
type manyClients struct {
	away atomic.Bool

	mu    sync.Mutex
	conns []net.Conn

	holding atomic.Int64
	lost    atomic.Int64
	changed chan struct{} // has room for one
	all     []*actors.Locks
	made    atomic.Int64 // connections since the last break
}

// holdMany has clients come, each with a lock below the path, and prints how long that took. A
// client that has lost its lock acquires it again.
func holdMany(p *locktest.Program, rest string) {
	var n int
	var path string
	fmt.Sscan(rest, &n, &path)
	servers, _ := strings.CutPrefix(p.Addr, locktest.LockServers)
	c := &manyClients{changed: make(chan struct{}, 1), all: make([]*actors.Locks, n)}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	ctx, cancel := context.WithCancel(context.Background())
	var holders sync.WaitGroup
	current = c
	begun := time.Now()
	var dialing errgroup.Group
	for i := range n {
		dialing.Go(func() error {
			locks, err := c.dial(servers, system)
			if err != nil {
				return err
			}
			c.all[i] = locks
			holders.Go(func() { c.hold(ctx, locks.Mutex(fmt.Sprintf("%s/%d", path, i))) })
			return nil
		})
	}
	if err := dialing.Wait(); err != nil {
		cancel()
		p.Print("%v", err)
		return
	}
	c.awaitAll()
	p.Print("all hold %f", time.Since(begun).Seconds())
	p.Stop = func() {
		cancel()
		holders.Wait()
		p.Print("lost %d", c.lost.Load())
		var closing sync.WaitGroup
		for _, locks := range c.all {
			closing.Go(func() { locks.Close() })
		}
		closing.Wait()
	}
}

// current is what the commands of this process are about.
var current *manyClients

func (c *manyClients) dial(servers string, system *actor.ActorSystem) (*actors.Locks, error) {
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return remote.Dial(ctx, servers, remote.DialConfig{Insecure: true, Config: actors.Config{System: system,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if c.away.Load() {
				return nil, errors.New("the network is away")
			}
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				c.mu.Lock()
				c.conns = append(c.conns, conn)
				c.mu.Unlock()
				c.made.Add(1)
			}
			return conn, err
		}}})
}

// hold holds a lock until ctx ends.
func (c *manyClients) hold(ctx context.Context, mu *actors.Mutex) {
	for ctx.Err() == nil {
		g, err := mu.Lock(ctx)
		if err != nil {
			<-time.After(100 * time.Millisecond)
			continue
		}
		c.count(1)
		select {
		case <-g.Done():
			c.lost.Add(1)
		case <-ctx.Done():
			g.Unlock(context.Background())
		}
		c.count(-1)
	}
}

func (c *manyClients) count(more int64) {
	c.holding.Add(more)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// awaitAll waits until all hold their locks, and their leases are live.
func (c *manyClients) awaitAll() {
	for !c.allHold() {
		select {
		case <-c.changed:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *manyClients) allHold() bool {
	if n := int64(len(c.all)); c.holding.Load() < n || c.made.Load() < n {
		return false
	}
	for _, locks := range c.all {
		if locks.Session().State != messages.SessionState_CONNECTED {
			return false
		}
	}
	return true
}

// goAway breaks all connections, lets none be made for a time, and prints how long all need after
// that until they hold their locks.
func goAway(p *locktest.Program, rest string) {
	length, _ := time.ParseDuration(rest)
	c := current
	c.away.Store(length > 0)
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.made.Store(0)
	c.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
	<-time.After(length)
	c.away.Store(false)
	begun := time.Now()
	c.awaitAll()
	p.Print("all hold %f", time.Since(begun).Seconds())
}
