package recipes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
)

// Tests of other lock libraries that are in no other file. README.md maps all such tests.

// Curator's testWithNamespace.
func TestWithNamespace(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Chroot()
		for name, l := range map[string]locktest.Handle{
			"mutex": locks.Mutex("/mutex"), "rw": locks.RWMutex("/rw").Read(), "below/leases": locks.SemaphoreMutex("/below"),
		} {
			g := locktest.Lock(b, l)
			if names := b.Nodes(b, b.LockPath+"/"+name); len(names) != 1 || g.Node() != "/"+name+"/"+names[0] {
				b.Errorf("%v; holds by %s", names, g.Node())
			}
			locktest.Unlock(b, g)
		}
	})
}

// Curator's TestLockACLs: the lock's node, its directory and those above have the ACL.
func TestLockACLs(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mine := func(cfg *actors.Config) {
			cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}
			cfg.ACL = zkbridge.CreatorAll()
		}
		locks, others := b.Locks(mine), b.Locks()
		top := b.LockPath + "-closed" // to other identities
		path := top + "/above/lock"
		g := locktest.Lock(b, locks.Mutex(path))
		conn := b.Client(b)
		locktest.Must(b, conn.AddAuth("digest", []byte("me:secret")))
		for _, node := range []string{g.Node(), path, top + "/above", top} {
			acl, _, err := conn.GetACL(node)
			locktest.Must(b, err)
			if len(acl) != 1 || acl[0].Scheme != "digest" || !strings.HasPrefix(acl[0].ID, "me:") || acl[0].Perms != zk.PermAll {
				b.Errorf("%s has ACL %v", node, acl)
			}
		}
		_, err := others.Mutex(path).Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoAuth)
		locktest.Unlock(b, g)
		left, _, err := conn.Children(path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) || len(left) > 0 {
			b.Errorf("%v is left; %v", left, err)
		}
	})
}

// Curator's testSetNodeData: a change of the data by the caller after the request has no effect.
func TestSetNodeData(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, rw := b.Client(b), b.RWMutex()
		for _, mode := range []*actors.ModeLock{rw.Read(), rw.Write()} {
			data := []byte("owner data")
			f := mode.Acquire(locktest.Within(b), actors.WithData(data))
			data[0] = 'X'
			g := locktest.Result(b, f)
			if got, _, err := conn.Get(g.Node()); err != nil || string(got) != "owner data" {
				b.Errorf("%s has %q, %v", g.Node(), got, err)
			}
			locktest.Unlock(b, g)
		}
	})
}

// Curator's testSomeLocksFailToLock: one member cannot be acquired, so the multi-lock holds none.
func TestSomeLocksFailToLock(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, conn := b.Locks(), b.Client(b)
		members := locktest.ThreeMembers(locks, b.LockPath)
		closed := members[1].Path()
		_, err := conn.Create(closed, nil, 0, zk.WorldACL(zk.PermRead|zk.PermAdmin))
		locktest.Must(b, err)
		multi := locks.MultiLock(members...)
		_, err = multi.Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoAuth)
		b.WaitNodes(0, "-a", "-b", "-c")
		for _, i := range []int{0, 2} {
			locktest.Unlock(b, locktest.Lock(b, locktest.ThreeMembers(b.Locks(), b.LockPath)[i].(locktest.Handle), actors.Try()))
		}
		_, err = conn.SetACL(closed, zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		g := locktest.Lock(b, multi)
		if !slices.ContainsFunc(g.Nodes(), func(node string) bool { return strings.HasPrefix(node, closed) }) {
			b.Errorf("nodes %v", g.Nodes())
		}
		locktest.Unlock(b, g)
		b.WaitNodes(0, "-a", "-b", "-c")
		locktest.Must(b, conn.Delete(closed, -1))
	})
}
