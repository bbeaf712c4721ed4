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

// work has two workers take turns at the locks until rest, which may be for the same one:
// then the process hands it on to itself.
func (u *user) work(paths []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	u.rest = func() { cancel(); all.Wait() }
	for range 2 {
		all.Go(func() {
			resources, err := connectResources(u.resources.conn.RemoteAddr().String())
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			for ctx.Err() == nil {
				u.turn(resources, paths[rand.N(len(paths))])
			}
		})
	}
}

// turn is one grant. It does not look whether the grant holds.
func (u *user) turn(resources *resourceClient, path string) {
	resources.do("call", path, actors.Token{}, int64(os.Getpid()))
	g, err := u.locks.Mutex(path).Lock(context.Background())
	if err != nil {
		u.say("refused %v", err)
		return
	}
	token := g.Token()
	resources.do("lock", path, token, 0)
	for range rand.N(4) {
		if number, ok := resources.do("read", path, token, 0); ok {
			<-time.After(rand.N(10 * time.Millisecond))
			resources.do("update", path, token, number)
		}
	}
	resources.do("begin", path, token, 0)
	if err := g.Unlock(context.Background()); err != nil {
		resources.do("lost", path, token, 0)
		return
	}
	resources.do("unlock", path, token, 0)
}
