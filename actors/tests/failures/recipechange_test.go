package failures

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// Processes change from a mutex to a read-write lock at another path, in two steps: first the old
// version runs beside one that acquires both locks, and then that one beside one that acquires the
// new lock alone. Writers never hold at one time with others, and all get their turns. With a
// multi-lock tokens increase too, from each version to each other one.
func TestRecipeChange(t *testing.T) {
	type version func(l *actors.Locks, path string) []locktest.Handle
	old := func(l *actors.Locks, path string) []locktest.Handle { return []locktest.Handle{l.Mutex(path + "/old")} }
	newest := func(l *actors.Locks, path string) []locktest.Handle {
		return []locktest.Handle{l.RWMutex(path + "/new").Write()}
	}
	inTurn := func(l *actors.Locks, path string) []locktest.Handle {
		return append(old(l, path), newest(l, path)...)
	}
	multi := func(l *actors.Locks, path string) []locktest.Handle {
		return []locktest.Handle{l.MultiLock(l.Mutex(path+"/old"), l.RWMutex(path+"/new").Write())}
	}
	for name, between := range map[string]version{"in turn": inTurn, "multi-lock": multi} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				for _, step := range [][]version{{old, between}, {between, newest}} {
					var holders, late atomic.Int32
					var greatest actors.Token // which the holder has
					var g errgroup.Group
					for i := range 6 {
						locks := b.Locks()
						g.Go(func() error {
							for range 20 {
								var grants []*actors.Grant
								for _, mu := range step[i%2](locks, b.LockPath) {
									grant, err := mu.Lock(locktest.Within(b))
									if err != nil {
										return err
									}
									grants = append(grants, grant)
								}
								if n := holders.Add(1); n != 1 {
									b.Errorf("%d hold at one time", n)
								}
								for _, grant := range grants {
									if err := grant.Verify(locktest.Within(b)); err != nil {
										return err
									}
								}
								token := grants[len(grants)-1].Token()
								if token.Compare(greatest) < 0 {
									late.Add(1)
								} else {
									greatest = token
								}
								holders.Add(-1)
								for _, grant := range grants {
									if err := grant.Unlock(locktest.Within(b)); err != nil {
										return err
									}
								}
							}
							return nil
						})
					}
					locktest.Must(b, g.Wait())
					b.Logf("%d of 120 tokens were less than an earlier holder's", late.Load())
					if name == "multi-lock" && late.Load() > 0 {
						b.Error("tokens do not increase")
					}
				}
			})
		})
	}
}
