package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
)

// compatible has, for each kind of a table lock, the kinds that may hold beside it.
var compatible = map[string]string{"IS": "IS IX S", "IX": "IS IX", "S": "IS S", "X": ""}

func excludes(one, other string) bool {
	for _, kind := range strings.Fields(compatible[one]) {
		if kind == other {
			return false
		}
	}
	return true
}

func TestCustomKindsExclude(t *testing.T) {
	each(t, func(b *testLock) {
		here, there := b.table(), b.table()
		for _, one := range tableKinds {
			g := lock(b, here.Kind(one))
			for _, other := range tableKinds {
				for _, table := range []*actors.Custom{here, there} {
					h, err := table.Kind(other).Lock(within(b), actors.Try())
					if excludes(one, other) {
						is(b, err, actors.ErrNotAcquired)
						b.waitNodes(1) // the node of the try is gone
						continue
					}
					must(b, err)
					unlock(b, h)
				}
			}
			unlock(b, g)
		}
	})
}

// Clients lock random kinds. Two kinds that exclude each other never hold together.
func TestCustomContention(t *testing.T) {
	each(t, func(b *testLock) {
		var mu sync.Mutex
		inside := map[string]int{}
		count := func(kind string, change int) {
			mu.Lock()
			defer mu.Unlock()
			for other, n := range inside {
				if change > 0 && n > 0 && excludes(kind, other) {
					b.Errorf("%s beside %d of %s", kind, n, other)
				}
			}
			inside[kind] += change
		}
		all := []*actors.Custom{b.table(), b.table(), b.table(), b.table()}
		b.turns(8, 15, func(i int) turn {
			kind := tableKinds[rand.IntN(len(tableKinds))]
			mode := all[i/2].Kind(kind)
			return turn{lock: mode, inside: func(*actors.Grant) {
				count(kind, 1)
				if _, err := mode.Participants(within(b)); err != nil { // which takes a while
					b.Error(err)
				}
				count(kind, -1)
			}}
		})
	})
}

// roadRule is a rule of two kinds, each of which excludes itself only.
func roadRule() queue.Rule {
	return queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}, Markers: []string{"-north-", "-south-"}}
}

// A contender that waits for one kind blocks no contender of another kind that is free, in the same
// process or another.
func TestCustomIndependentKinds(t *testing.T) {
	each(t, func(b *testLock) {
		here, there := b.locks().Custom(b.path, "road", roadRule(), "north", "south"), b.locks().Custom(b.path, "road", roadRule(), "north", "south")
		north := lock(b, there.Kind("north"))
		next := here.Kind("north").Acquire(within(b))
		b.waitNodes(2)
		south := lock(b, here.Kind("south"), actors.Try())
		after := here.Kind("south").Acquire(within(b))
		b.waitNodes(4)
		elsewhere := there.Kind("south").Acquire(within(b))
		b.waitNodes(5)
		_, err := here.Kind("south").Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		pending(b, next, after, elsewhere)
		unlock(b, south)
		first := result(b, after)
		pending(b, next, elsewhere)
		unlock(b, first)
		unlock(b, result(b, elsewhere))
		pending(b, next)
		unlock(b, north)
		unlock(b, result(b, next))
	})
}

// A holder of one kind enters another kind that its rule lets it re-enter, ahead of the waiters. A
// request that would wait for its own owner is refused.
func TestCustomReentry(t *testing.T) {
	each(t, func(b *testLock) {
		table, me := b.table(), actors.WithOwner("me")
		write := lock(b, table.Kind("X"), me)
		again := lock(b, table.Kind("X"), me)
		if again.Node() != write.Node() {
			b.Errorf("the re-entry is on %s, its owner on %s", again.Node(), write.Node())
		}
		waiting := b.table().Kind("IX").Acquire(within(b))
		b.waitNodes(2)
		read := lock(b, table.Kind("S"), me)
		unlock(b, again)
		unlock(b, write)
		pending(b, waiting)
		unlock(b, lock(b, b.table().Kind("IS"), actors.Try()))
		_, err := table.Kind("X").Lock(within(b), me)
		is(b, err, actors.ErrDeadlock)
		unlock(b, read)
		unlock(b, result(b, waiting))
	})
}

func TestCustomParticipants(t *testing.T) {
	each(t, func(b *testLock) {
		table := b.table()
		reader, intent := lock(b, table.Kind("S")), lock(b, table.Kind("IS"))
		writer := table.Kind("IX").Acquire(within(b))
		b.waitNodes(3)
		conn := b.Client(b)
		foreign := b.foreignNode(conn, curatorID+"-lock-") // of no kind of this rule
		all, err := b.table().Kind("X").Participants(within(b))
		must(b, err)
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprint(p.Kind, " ", p.Holds))
		}
		if want := "[S true IS true IX false]"; fmt.Sprint(got) != want {
			b.Errorf("%v, want %s", got, want)
		}
		foreign.leave()
		broken, err := table.Kind("S").RevokeHolders(within(b), 1)
		if err != nil || broken != 2 {
			b.Errorf("%d holders are broken, %v; want 2", broken, err)
		}
		closes(b, reader.Done(), "the reader's grant")
		closes(b, intent.Done(), "the intention's grant")
		unlock(b, result(b, writer))
	})
}

// Nodes with the marker of another library take part if the rule has that marker.
func TestCustomMarkersOfOthers(t *testing.T) {
	each(t, func(b *testLock) {
		rule := roadRule()
		rule.Markers[1] = "-lock-"
		road := b.locks().Custom(b.path, "road", rule, "own", "Curator's")
		theirs := b.foreignNode(b.Client(b), curatorID+"-lock-")
		f := road.Kind("Curator's").Acquire(within(b))
		b.waitNodes(2)
		unlock(b, lock(b, road.Kind("own")))
		pending(b, f)
		theirs.leave()
		unlock(b, result(b, f))
	})
}

func TestCustomInMultiLock(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		table := b.tableOf(locks)
		multi := locks.MultiLock(locks.Mutex(b.path+"-row"), table.Kind("IX"))
		g := lock(b, multi)
		unlock(b, lock(b, b.table().Kind("IS"), actors.Try()))
		_, err := b.table().Kind("S").Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
		b.waitNodes(0, "-row")
	})
}

func TestCustomInvalid(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		change := func(f func(*queue.Rule)) queue.Rule {
			r := roadRule()
			f(&r)
			return r
		}
		for _, c := range []struct {
			name, kind string
			rule       queue.Rule
			want       string
		}{
			{"", "north", roadRule(), "it must have a name"},
			{"road", "west", roadRule(), `kind "west": a road has north, south`},
			{"road", "north", change(func(r *queue.Rule) { r.Permits = 0 }), "rule of a road: Permits 0: it must be at least 1"},
			{"road", "west", change(func(r *queue.Rule) { r.Permits = -1 }), "Permits -1"},
			{"road", "north", change(func(r *queue.Rule) { r.Markers[1] = "-south\x00-" }), `kind "south": marker "-south\x00-" cannot be in a node's name`},
		} {
			_, err := locks.Custom(b.path, c.name, c.rule, "north", "south").Kind(c.kind).Lock(within(b))
			is(b, err, actors.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				b.Errorf("got %v, want %s", err, c.want)
			}
		}
		// One path has one rule, with one name for each kind.
		road := locks.Custom(b.path, "road", roadRule(), "north", "south")
		g := lock(b, road.Kind("north"))
		_, err := locks.Custom(b.path, "road", roadRule(), "up", "down").Kind("up").Lock(within(b))
		is(b, err, actors.ErrInvalid)
		unlock(b, lock(b, locks.Custom(b.path, "road", roadRule(), "north", "south").Kind("south")))
		unlock(b, g)
	})
}

// A change of the rule after Custom has no effect.
func TestCustomKeepsItsRule(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		rule := roadRule()
		road := b.locks().Custom(b.path, "road", rule, "north", "south")
		rule.BlockedBy[0], rule.Markers[0] = 0, "/"
		g := lock(b, road.Kind("north"))
		_, err := road.Kind("north").Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
	})
}
