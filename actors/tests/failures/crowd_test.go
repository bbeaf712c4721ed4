//go:build unix

package failures

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Actors in processes without ZooKeeper send lock messages to local PIDs. The processes share a
// file in memory with a number for each lock, which is 1 while an actor holds the lock.

var crowdTime = flag.Duration("crowd", 0, "how long each run of the crowd takes; 0: not at all, or 3s with ACTORLOCK_EXHAUSTIVE=1")

const (
	crowdProcesses = 4
	crowdActors    = 2500 // of each process
	crowdLocks     = 1000
)

// TestCrowdOfActors has 10,000 actors of four processes share 1,000 locks of one lock server.
func TestCrowdOfActors(t *testing.T) {
	if *crowdTime == 0 && !zktest.Exhaustive() {
		t.Skip("runs with -crowd 3s, and with ACTORLOCK_EXHAUSTIVE=1")
	}
	locktest.Each(t, func(b *locktest.Fixture) {
		if *crowdTime == 0 && b.Real() {
			b.Skip("runs with -crowd 3s")
		}
		file := filepath.Join(t.TempDir(), "held")
		locktest.Must(b, os.WriteFile(file, make([]byte, 4*crowdLocks), 0o600))
		server := locktest.StartProcess(b, b.Addr(), locktest.LongSession, "")
		server.Send("serve 127.0.0.1:0")
		address := server.Expect("serving")
		var all []*locktest.ChildProcess
		for range crowdProcesses {
			p := locktest.StartProcess(b, locktest.LockServers+address, locktest.LongSession, file)
			p.Send("crowd %s", b.LockPath)
			all = append(all, p)
		}
		<-time.After(cmp.Or(*crowdTime, 3*time.Second))
		total := 0
		for _, p := range all {
			p.Send("stop")
		}
		for _, p := range all {
			var grants, wrong int
			_, err := fmt.Sscanf(p.Expect("crowd"), "%d grants, %d wrong", &grants, &wrong)
			locktest.Must(b, err)
			p.Expect("stopped")
			p.Exit()
			if wrong > 0 || grants == 0 {
				b.Errorf("%d grants, of which %d beside another holder or with an unexpected answer", grants, wrong)
			}
			total += grants
		}
		b.Logf("%d grants", total)
		server.Exit()
	})
}

func init() { processCommands["crowd"] = crowd }

// crowd has actors use random locks below a path, until stop.
func crowd(p *locktest.Program, path string) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	servers, _ := strings.CutPrefix(p.Addr, locktest.LockServers)
	locks, err := remote.Dial(context.Background(), servers, remote.DialConfig{Config: actors.Config{System: system}, Insecure: true})
	c := &crowdOfProcess{ended: make(chan struct{})}
	if err == nil {
		c.held, err = sharedNumbers(p.Argument)
	}
	for i := 0; i < crowdLocks && err == nil; i++ {
		var lock *actor.PID
		lock, err = locks.Mutex(fmt.Sprintf("%s/%d", path, i)).PID()
		c.locks = append(c.locks, lock)
	}
	if err != nil {
		p.Print("%v", err)
		return
	}
	c.running.Store(crowdActors)
	for range crowdActors {
		system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &crowdActor{crowd: c} }))
	}
	p.Stop = func() {
		c.stopping.Store(true)
		<-c.ended
		p.Print("crowd %d grants, %d wrong", c.grants.Load(), c.wrong.Load())
		locks.Close()
	}
}

// sharedNumbers maps the file into memory.
func sharedNumbers(name string) ([]atomic.Int32, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bytes, err := syscall.Mmap(int(f.Fd()), 0, 4*crowdLocks, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Int32)(unsafe.Pointer(unsafe.SliceData(bytes))), crowdLocks), nil
}

// crowdOfProcess is what the actors of one process share.
type crowdOfProcess struct {
	locks         []*actor.PID
	held          []atomic.Int32 // by lock, of all processes
	grants, wrong atomic.Int64
	running       atomic.Int64
	stopping      atomic.Bool
	ended         chan struct{} // closed when no actor runs any more
}

// crowdActor acquires a random lock, holds it and releases it, over and over.
type crowdActor struct {
	crowd  *crowdOfProcess
	number uint64 // of the request
	lock   int
}

// workDone is the end of the work under a lock.
type workDone struct{}

// Receive implements actor.Actor.
func (a *crowdActor) Receive(ctx actor.Context) {
	c := a.crowd
	switch ctx.Message().(type) {
	case *actor.Started, *messages.Released:
		if c.stopping.Load() {
			ctx.Stop(ctx.Self())
			return
		}
		a.number++
		a.lock = rand.IntN(crowdLocks)
		ctx.Request(c.locks[a.lock], &messages.Acquire{RequestId: a.number})
	case *messages.Granted:
		c.grants.Add(1)
		if !c.held[a.lock].CompareAndSwap(0, 1) {
			c.wrong.Add(1)
		}
		root, self := ctx.ActorSystem().Root, ctx.Self()
		time.AfterFunc(rand.N(time.Millisecond), func() { root.Send(self, workDone{}) })
	case workDone:
		c.held[a.lock].Store(0)
		ctx.Request(c.locks[a.lock], &messages.Release{RequestId: a.number})
	case *messages.Refused, *messages.Lost:
		c.wrong.Add(1)
		ctx.Stop(ctx.Self())
	case *actor.Stopped:
		if c.running.Add(-1) == 0 {
			close(c.ended)
		}
	}
}
