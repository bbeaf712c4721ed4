package failures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
)

// processCommands are the commands of the processes that these tests kill and pause.
var processCommands = map[string]locktest.Command{"work": work, "linger": linger, "write": write}

// work has two goroutines use random locks until stop is called. If both use one lock, the process
// hands it on to itself.
func work(p *locktest.Program, rest string) { useLocks(p, strings.Fields(rest), 0) }

// linger is work that also holds a lock for long now and then, at most until the grant is lost. Beside that
// it has the first lock requested all the time, and three of four of these requests cancelled.
func linger(p *locktest.Program, rest string) {
	paths := strings.Fields(rest)
	useLocks(p, paths[1:], 8*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	stop := p.Stop
	p.Stop = func() { cancel(); all.Wait(); stop() }
	for range 4 {
		all.Go(func() { requestAlways(ctx, p.Locks.Mutex(paths[0])) })
	}
}

// requestAlways requests a lock, releases it at once, or cancels the request, until ctx ends. A request that
// is not cancelled has no limit: it blocks if its answer is lost.
func requestAlways(ctx context.Context, mu *actors.Mutex) {
	for ctx.Err() == nil {
		limited, cancel := context.WithCancel(context.Background())
		if rand.N(4) > 0 {
			time.AfterFunc(rand.N(20*time.Millisecond), cancel)
		}
		if g, err := mu.Lock(limited); err == nil {
			g.Release()
		}
		cancel()
		<-time.After(rand.N(20 * time.Millisecond))
	}
}

func useLocks(p *locktest.Program, paths []string, longest time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.Stop = func() { cancel(); all.Wait() }
	for range 2 {
		all.Go(func() {
			resources, err := connectResources(p.Argument)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			for ctx.Err() == nil {
				useLock(p, resources, paths[rand.N(len(paths))], longest)
			}
		})
	}
}

// useLock acquires the lock, uses it, and releases. It does not check whether the grant is lost.
func useLock(p *locktest.Program, resources *resourceClient, path string, longest time.Duration) {
	resources.call("call", path, actors.Token{}, int64(os.Getpid()))
	g, err := p.Locks.Mutex(path).Lock(context.Background())
	if err != nil {
		p.Print("refused %v", err)
		return
	}
	token := g.Token()
	resources.call("lock", path, token, 0)
	resources.use(path, token, func() bool { return g.Err() == nil })
	if longest > 0 && rand.N(3) == 0 {
		for end := time.After(rand.N(longest)); ; {
			resources.believe(path, token, func() bool { return g.Err() == nil })
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-end:
			case <-g.Done():
			}
			break
		}
	}
	resources.call("begin", path, token, 0)
	if err := g.Unlock(context.Background()); err != nil {
		resources.call("lost", path, token, 0)
		return
	}
	resources.call("unlock", path, token, 0)
}

// write writes again and again under the oldest grant, to a node of ZooKeeper and to the resource
// server, also after the loss of the grant. It prints whether the writes are accepted whenever that
// changes, and the grant's Err after a pause of the process.
func write(p *locktest.Program, node string) {
	resources, err := connectResources(p.Argument)
	if err != nil {
		p.Print("%v", err)
		return
	}
	g := p.Grants[0]
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.Stop = func() { cancel(); all.Wait() }
	repeat := func(what string, write func() string) {
		all.Go(func() {
			for was := ""; ctx.Err() == nil; {
				if now := write(); now != "" && now != was {
					p.Print("%s %s", what, now)
					was = now
				}
			}
		})
	}
	repeat("guarded write", func() string {
		_, err := p.Locks.Multi(ctx, g.Guard(&zk.SetDataRequest{Path: node, Data: []byte(g.Token().String()), Version: -1})...)
		var refused *zkbridge.OpError
		switch {
		case err == nil:
			return "accepted"
		case errors.As(err, &refused) && refused.Index == 0:
			return "refused"
		}
		return "" // not sent, or the outcome is unknown
	})
	repeat("write by token", func() string {
		_, accepted := resources.call("write", g.Path(), g.Token(), 0)
		if accepted {
			return "accepted"
		}
		return "refused"
	})
	all.Go(func() {
		for last := time.Now(); ctx.Err() == nil; <-time.After(time.Millisecond) {
			err := g.Err() // before any other goroutine can learn of the loss
			if now := time.Now(); now.Sub(last) > p.SessionTimeout {
				p.Print("resumed %v", err)
			}
			last = time.Now()
		}
	})
}
