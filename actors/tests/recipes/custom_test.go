package recipes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
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

// kindsOfATable are the kinds of a table lock: to intend to read or write rows, and to read or write
// the table.
var kindsOfATable = []string{"IS", "IX", "S", "X"}

// tableRule is the rule by which each kind excludes those that are not compatible with it.
func tableRule() queue.Rule {
	rule := queue.Rule{Permits: 1}
	for i, one := range kindsOfATable {
		var blocked, reenters queue.KindSet
		for j, other := range kindsOfATable {
			if excludes(one, other) {
				blocked |= queue.Kinds(queue.Kind(j))
			}
		}
		reenters = queue.Kinds(queue.Kind(i))
		if one == "S" {
			reenters |= queue.Kinds(3) // X may become S
		}
		rule.BlockedBy, rule.Reenter = append(rule.BlockedBy, blocked), append(rule.Reenter, reenters)
		rule.Markers = append(rule.Markers, "-"+strings.ToLower(one)+"-")
	}
	return rule
}

func TestCustomKindsExclude(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		here, there := newTable(b), newTable(b)
		for _, one := range kindsOfATable {
			g := locktest.Lock(b, here.Kind(one))
			for _, other := range kindsOfATable {
				for _, table := range []*actors.Custom{here, there} {
					h, err := table.Kind(other).Lock(locktest.Within(b), actors.Try())
					if excludes(one, other) {
						locktest.Is(b, err, actors.ErrNotAcquired)
						b.WaitNodes(1) // the node of the try is gone
						continue
					}
					locktest.Must(b, err)
					locktest.Unlock(b, h)
				}
			}
			locktest.Unlock(b, g)
		}
	})
}

// roadRule is a rule of two kinds, each of which excludes itself only.
func roadRule() queue.Rule {
	return queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}, Markers: []string{"-north-", "-south-"}}
}

// A contender that waits for one kind blocks no contender of another kind that is free, in the same
// process or another.
func TestCustomIndependentKinds(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		here, there := b.Locks().Custom(b.LockPath, "road", roadRule(), "north", "south"), b.Locks().Custom(b.LockPath, "road", roadRule(), "north", "south")
		north := locktest.Lock(b, there.Kind("north"))
		next := here.Kind("north").Acquire(locktest.Within(b))
		b.WaitNodes(2)
		south := locktest.Lock(b, here.Kind("south"), actors.Try())
		after := here.Kind("south").Acquire(locktest.Within(b))
		b.WaitNodes(4)
		elsewhere := there.Kind("south").Acquire(locktest.Within(b))
		b.WaitNodes(5)
		_, err := here.Kind("south").Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Pending(b, next, after, elsewhere)
		locktest.Unlock(b, south)
		first := locktest.Result(b, after)
		locktest.Pending(b, next, elsewhere)
		locktest.Unlock(b, first)
		locktest.Unlock(b, locktest.Result(b, elsewhere))
		locktest.Pending(b, next)
		locktest.Unlock(b, north)
		locktest.Unlock(b, locktest.Result(b, next))
	})
}

// A holder of one kind enters another kind that its rule lets it re-enter, ahead of the waiters. A
// request that would wait for its own owner is refused.
func TestCustomReentry(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		table, me := newTable(b), actors.WithOwner("me")
		write := locktest.Lock(b, table.Kind("X"), me)
		again := locktest.Lock(b, table.Kind("X"), me)
		if again.Node() != write.Node() {
			b.Errorf("the re-entry is on %s, its owner on %s", again.Node(), write.Node())
		}
		waiting := newTable(b).Kind("IX").Acquire(locktest.Within(b))
		b.WaitNodes(2)
		read := locktest.Lock(b, table.Kind("S"), me)
		locktest.Unlock(b, again)
		locktest.Unlock(b, write)
		locktest.Pending(b, waiting)
		locktest.Unlock(b, locktest.Lock(b, newTable(b).Kind("IS"), actors.Try()))
		_, err := table.Kind("X").Lock(locktest.Within(b), me)
		locktest.Is(b, err, actors.ErrDeadlock)
		locktest.Unlock(b, read)
		locktest.Unlock(b, locktest.Result(b, waiting))
	})
}

func TestCustomParticipants(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		table := newTable(b)
		reader, intent := locktest.Lock(b, table.Kind("S")), locktest.Lock(b, table.Kind("IS"))
		writer := table.Kind("IX").Acquire(locktest.Within(b))
		b.WaitNodes(3)
		conn := b.Client(b)
		foreign := b.ForeignNode(conn, locktest.CuratorID+"-lock-") // of no kind of this rule
		all, err := newTable(b).Kind("X").Participants(locktest.Within(b))
		locktest.Must(b, err)
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprint(p.Kind, " ", p.Holds))
		}
		if want := "[S true IS true IX false]"; fmt.Sprint(got) != want {
			b.Errorf("%v, want %s", got, want)
		}
		foreign.Leave()
		broken, err := table.Kind("S").RevokeHolders(locktest.Within(b), 1)
		if err != nil || broken != 2 {
			b.Errorf("%d holders are broken, %v; want 2", broken, err)
		}
		locktest.Closes(b, reader.Done(), "the reader's grant")
		locktest.Closes(b, intent.Done(), "the intention's grant")
		locktest.Unlock(b, locktest.Result(b, writer))
	})
}

// Nodes with the marker of another library take part if the rule has that marker.
func TestCustomMarkersOfOthers(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		rule := roadRule()
		rule.Markers[1] = "-lock-"
		road := b.Locks().Custom(b.LockPath, "road", rule, "own", "Curator's")
		theirs := b.ForeignNode(b.Client(b), locktest.CuratorID+"-lock-")
		f := road.Kind("Curator's").Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Unlock(b, locktest.Lock(b, road.Kind("own")))
		locktest.Pending(b, f)
		theirs.Leave()
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

func TestCustomInMultiLock(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		table := tableOf(b, locks)
		multi := locks.MultiLock(locks.Mutex(b.LockPath+"-row"), table.Kind("IX"))
		g := locktest.Lock(b, multi)
		locktest.Unlock(b, locktest.Lock(b, newTable(b).Kind("IS"), actors.Try()))
		_, err := newTable(b).Kind("S").Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, g)
		b.WaitNodes(0, "-row")
	})
}

// One path has one rule, with one name for each kind.
func TestCustomInvalid(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		road := locks.Custom(b.LockPath, "road", roadRule(), "north", "south")
		g := locktest.Lock(b, road.Kind("north"))
		_, err := locks.Custom(b.LockPath, "road", roadRule(), "up", "down").Kind("up").Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		locktest.Unlock(b, locktest.Lock(b, locks.Custom(b.LockPath, "road", roadRule(), "north", "south").Kind("south")))
		locktest.Unlock(b, g)
	})
}

// A change of the rule after Custom has no effect.
func TestCustomKeepsItsRule(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a rule of the program's own")
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		rule := roadRule()
		road := b.Locks().Custom(b.LockPath, "road", rule, "north", "south")
		rule.BlockedBy[0], rule.Markers[0] = 0, "/"
		g := locktest.Lock(b, road.Kind("north"))
		_, err := road.Kind("north").Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, g)
	})
}

// newTable returns the table lock on a connection of its own.
func newTable(b *locktest.Fixture) *actors.Custom {
	b.Helper()
	return tableOf(b, b.Locks())
}

func tableOf(b *locktest.Fixture, locks *actors.Locks) *actors.Custom {
	return locks.Custom(b.LockPath, "table lock", tableRule(), kindsOfATable...)
}
