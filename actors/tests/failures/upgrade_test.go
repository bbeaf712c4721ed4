package failures

import (
	"flag"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var newerJars = flag.String("newer-jars", "", "the folder with the jars of another ZooKeeper, to which TestUpgrade upgrades")

// An ensemble of three is upgraded under locks, one server after the other. A holder goes on, and
// others acquire and release a lock meanwhile, with tokens that increase.
func TestUpgrade(t *testing.T) {
	if *newerJars == "" {
		t.Skip("needs a second ZooKeeper: -newer-jars")
	}
	b := locktest.Ensemble(t, zktest.TickTime(time.Second))
	held := locktest.Lock(b, b.Locks().Mutex(b.LockPath+"/held"))
	end, ended := make(chan struct{}), make(chan struct{})
	busy := b.Locks().Mutex(b.LockPath + "/busy")
	var longest time.Duration
	var acquires int
	go func() {
		defer close(ended)
		var last actors.Token
		for !locktest.IsClosed(end) {
			begun := time.Now()
			g, err := busy.Lock(locktest.Within(b))
			if err != nil {
				b.Error(err)
				return
			}
			longest = max(longest, time.Since(begun))
			locktest.ExpectIncreasing(b, last, g.Token())
			last, acquires = g.Token(), acquires+1
			if err := g.Unlock(locktest.Within(b)); err != nil {
				b.Logf("a release: %v", err)
			}
		}
	}()
	for _, member := range b.Members() {
		before := member.Version(b)
		member.Upgrade(b, *newerJars)
		b.Logf("%s to %s", before, member.Version(b))
		locktest.Must(b, held.Verify(locktest.Within(b)))
	}
	close(end)
	<-ended
	b.Logf("%d acquires, the longest of %v; the holder: %v", acquires, longest, held.Err())
	locktest.Must(b, held.Err())
	locktest.Unlock(b, held)
}
