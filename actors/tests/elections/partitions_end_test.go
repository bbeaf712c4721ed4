package elections

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Members leave once, whatever ends them: a member that holds no partition, one that has just begun to join, and
// one of Locks that drain.
func TestPartitionsEndOnce(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		g := newShards(b, 1)
		first := g.join(b.Locks(), "first")
		g.balanced(first)
		for range 10 { // the second member leads nothing
			locks := b.Locks()
			idle := g.join(locks, "idle")
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.Nodes(b, g.path+"/members")) >= 2 }, "two members")
			locktest.Must(b, locks.Close())
			locktest.Closes(b, idle.left, "the Join of a member that leads nothing")
			locktest.Is(b, idle.err, actors.ErrClosed)
		}
		for range 10 { // it begins to join
			locks := b.Locks()
			joining := g.join(locks, "joining")
			<-time.After(rand.N(4 * time.Millisecond))
			locktest.Must(b, locks.Close())
			locktest.Closes(b, joining.left, "the Join of a member that begins")
			locktest.Is(b, joining.err, actors.ErrClosed)
		}
		locks := b.Locks()
		locktest.Must(b, locks.Drain(locktest.Within(b)))
		for range 10 {
			late := g.join(locks, "late")
			locktest.Closes(b, late.left, "the Join of a member that is late")
			locktest.Is(b, late.err, actors.ErrDraining)
		}
	})
}

// A member that may not write to the list of members leaves with ErrNoAuth.
func TestPartitionsWithoutPermission(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		for _, path := range []string{b.LockPath, b.LockPath + "/members"} {
			acl := zk.WorldACL(zk.PermAll)
			if path != b.LockPath {
				acl = zk.WorldACL(zk.PermRead)
			}
			_, err := conn.Create(path, nil, 0, acl)
			locktest.Must(b, err)
		}
		none := func(*actors.PartitionTerm) { b.Error("a term has begun") }
		locktest.Is(b, b.Locks().Partitions(b.LockPath, 4).Join(locktest.Within(b), nil, none), actors.ErrNoAuth)
		for _, node := range []string{"/count", "/members"} {
			locktest.Must(b, conn.Delete(b.LockPath+node, -1))
		}
	})
}
