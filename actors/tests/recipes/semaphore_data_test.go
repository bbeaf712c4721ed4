package recipes

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// Several transactions create many permits with much data. Tokens increase nevertheless from one
// grant to the next that does not fit beside it.
func TestManyPermitsWithData(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		const permits = 100
		semaphores := []*actors.Semaphore{b.Locks().Semaphore(b.LockPath, permits), b.Locks().Semaphore(b.LockPath, permits)}
		var g errgroup.Group
		inside, last := 0, actors.Token{}
		for i := range 8 {
			n := []int{64, 51, 90, 100}[i/2]
			g.Go(func() error {
				for range 2 {
					grant, err := semaphores[i%2].Lock(locktest.Within(b), actors.Permits(n), actors.WithData(make([]byte, 16<<10)))
					if err != nil {
						return err
					}
					inside++ // the race detector checks this
					if inside != 1 || len(grant.Nodes()) != n || grant.Token().Compare(last) <= 0 {
						return fmt.Errorf("%d inside, %d nodes, token %v after %v", inside, len(grant.Nodes()), grant.Token(), last)
					}
					last = grant.Token()
					inside--
					if err := grant.Unlock(locktest.Within(b)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		locktest.Must(b, g.Wait())
	})
}
