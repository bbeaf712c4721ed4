package failures

import (
	"fmt"
	"math"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A holder near the end of the sequence numbers gets Contended when others wait, also outside the
// queue where it does not see them. So local queues take turns. A run by habit has a third of the
// numbers.
func TestContendedAtSequenceOverflow(t *testing.T) {
	t.Parallel()
	sampled := sample.OneIn(t, 3)
	for name, s := range map[string]*zktest.Server{"embedded": zktest.Embedded(t), "zookeeper": zktest.Own(t)} {
		for _, count := range []int32{nearEnd - 3, nearEnd, lastEntry, math.MaxInt32 - 1, math.MaxInt32} {
			if !sampled() {
				continue
			}
			t.Run(fmt.Sprint(name, count), func(t *testing.T) {
				b := locktest.NewFixture(t, s)
				numbersBegin(b, locktest.Recipe{}, count)
				config, all := locktest.OwnerActors(b.T, 1)
				alice := all[0]
				target, other := locktest.PID(b, b.Locks(config).Mutex(b.LockPath)), b.Mutex()
				var f *actors.Future[*actors.Grant]
				for id := range uint64(6) {
					alice.Send(target, &messages.Acquire{RequestId: id, NotifyContended: true})
					if f != nil {
						locktest.Unlock(b, locktest.Result(b, f))
					}
					alice.Granted(id)
					f = other.Acquire(locktest.Within(b))
					if m := locktest.ExpectMessage[*messages.Contended](alice); m.RequestId != id {
						b.Errorf("got %v", m)
					}
					if id%2 == 0 {
						alice.Send(target, &messages.Release{RequestId: id})
						alice.Released(id, 0)
						locktest.Unlock(b, locktest.Result(b, f))
						f = nil
					} else {
						alice.Send(target, &messages.Release{RequestId: id})
						alice.Released(id, 0)
					}
				}
				locktest.Unlock(b, locktest.Result(b, f))
				f = nil
				local := b.Locks().Mutex(b.LockPath, locktest.ShortLinger)
				for range 10 {
					g := locktest.Lock(b, local)
					f := other.Acquire(locktest.Within(b))
					locktest.Unlock(b, g)
					locktest.Unlock(b, locktest.Result(b, f))
				}
			})
		}
	}
}
