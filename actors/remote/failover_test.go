package remote_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A client whose server is cut off has a lease of the next one soon after its own is over, though its
// attempts to reach the first had no answer.
func TestFailoverOfASilentServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		zktest.Bubble(t, func(t *testing.T) {
			w := &world{T: t, fabric: newFabric(rand.New(rand.NewPCG(seed, 1))), zk: zktest.Virtual(t), began: time.Now(), names: []string{"server", "second"}}
			for _, server := range w.names {
				w.startServer(server)
			}
			l, err := remote.DialBy(t.Context(), w.dialer("client"), w.names, remote.DialConfig{Config: actors.Config{Logger: w.logger("")}})
			if err != nil {
				t.Fatal(err)
			}
			g := lockOf(t, l.Mutex("/lock"))
			w.cut("server", "client", time.Hour)
			w.cut("client", "server", time.Hour)
			<-g.Done()
			begun := time.Now()
			lockOf(t, l.Mutex("/other"))
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("the next server has granted a lock %v after the loss of the first", took)
			}
			w.heal()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			<-time.After(2 * leaseTime)
			for _, s := range w.servers {
				w.closeServer(s)
			}
		})
	}
}
