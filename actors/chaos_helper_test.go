package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// work has two goroutines use random locks until stop is called. If both use one lock, the process
// hands it on to itself.
func (p *childProgram) work(paths []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.stop = func() { cancel(); all.Wait() }
	for range 2 {
		all.Go(func() {
			resources, err := connectResources(p.resources.conn.RemoteAddr().String())
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			for ctx.Err() == nil {
				p.useLock(resources, paths[rand.N(len(paths))])
			}
		})
	}
}

// useLock acquires the lock, reads and updates the number, and releases. It does not check whether
// the grant is lost.
func (p *childProgram) useLock(resources *resourceClient, path string) {
	resources.call("call", path, actors.Token{}, int64(os.Getpid()))
	g, err := p.locks.Mutex(path).Lock(context.Background())
	if err != nil {
		p.print("refused %v", err)
		return
	}
	token := g.Token()
	resources.call("lock", path, token, 0)
	for range rand.N(4) {
		if number, ok := resources.call("read", path, token, 0); ok {
			<-time.After(rand.N(10 * time.Millisecond))
			resources.call("update", path, token, number)
		}
	}
	resources.call("begin", path, token, 0)
	if err := g.Unlock(context.Background()); err != nil {
		resources.call("lost", path, token, 0)
		return
	}
	resources.call("unlock", path, token, 0)
}
