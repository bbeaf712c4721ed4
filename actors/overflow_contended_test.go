package actors_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/actorlock/actorlock/actors"
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
				b := lockOn(t, s)
				b.numbersBegin(recipe{}, count)
				config, all := testActors(b.T, 1)
				alice := all[0]
				target, other := pid(b, b.locks(config).Mutex(b.path)), b.mutex()
				var f *actors.Future[*actors.Grant]
				for id := range uint64(6) {
					alice.send(target, &messages.Acquire{RequestId: id, NotifyContended: true})
					if f != nil {
						unlock(b, result(b, f))
					}
					alice.granted(id)
					f = other.Acquire(within(b))
					if m := expectMessage[*messages.Contended](alice); m.RequestId != id {
						b.Errorf("got %v", m)
					}
					if id%2 == 0 {
						alice.send(target, &messages.Release{RequestId: id})
						alice.released(id, 0)
						unlock(b, result(b, f))
						f = nil
					} else {
						alice.send(target, &messages.Release{RequestId: id})
						alice.released(id, 0)
					}
				}
				unlock(b, result(b, f))
				f = nil
				local := b.locks().Mutex(b.path, shortLinger)
				for range 10 {
					g := lock(b, local)
					f := other.Acquire(within(b))
					unlock(b, g)
					unlock(b, result(b, f))
				}
			})
		}
	}
}
