package elections

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Whatever other programs have in the list of members, the members share the partitions: nodes of other
// locks, of other names and of no record.
func TestPartitionsWithForeignNodes(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		g := newShards(v.Fixture, 8)
		conn := v.Client(v)
		list := group.Members(v.LockPath)
		one := g.join(v.Locks(), "one")
		g.balanced(one)
		for name, prefix := range locktest.ForeignPrefixes {
			_, err := conn.Create(list+"/"+prefix, []byte(name), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			locktest.Must(v, err)
		}
		for node, data := range map[string]string{"note": "of an operator", locktest.CuratorID + "-__READ__0000000003": "{}",
			locktest.CuratorID + "-__READ__0000000004": `{"partitions":8,"member":"none"}`} {
			_, err := conn.Create(list+"/"+node, []byte(data), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(v, err)
		}
		two := g.join(v.Locks(), "two")
		g.balanced(one, two)
		g.agree(v.Locks().Partitions(v.LockPath, 8), map[string]*shard{"one": one, "two": two})
		one.leaves()
		g.balanced(two)
		two.leaves()
	})
}

// A program that holds or awaits the list of members as a writer keeps no member from it: records count as
// soon as their nodes are there.
func TestPartitionsWithForeignWriter(t *testing.T) {
	for name, before := range map[string]bool{"holds": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Bubble(t, func(v *locktest.Virtual) {
				log := new(locktest.Log)
				g := newShards(v.Fixture, 8)
				write := v.Locks().RWMutex(group.Members(v.LockPath)).Write()
				var one *shard
				if before {
					grant := locktest.Lock(v, write)
					defer grant.Release()
					one = g.join(v.Locks(), "one")
					g.balanced(one)
				} else {
					one = g.join(v.Locks(), "one")
					g.balanced(one)
					pending := write.Acquire(context.Background())
					defer pending.Cancel()
				}
				began := time.Now()
				two, three := g.join(v.Locks(log.Config), "two"), g.join(v.Locks(), "three")
				g.balanced(one, two, three)
				observer := v.Locks().Partitions(v.LockPath, 8)
				g.agree(observer, map[string]*shard{"one": one, "two": two, "three": three})
				two.leaves()
				if n := len(log.With("WARN", "as a writer", v.LockPath)); n != 1 {
					v.Errorf("%d lines of the log name the writer", n)
				}
				g.balanced(one, three)
				if after := time.Since(began); after > time.Minute {
					v.Errorf("the members shared the partitions after %v", after)
				}
				one.leaves()
				three.leaves()
				zktest.Eventually(v, time.Hour, func() bool { return len((<-observer.Observe(locktest.Within(v))).Members) == 0 }, "no member")
			})
		})
	}
}

// Processes that come know a member whose node another program has overwritten: it publishes again. It does
// so every 30 s at most, also if that program overwrites each of its nodes after the other members have read it.
// (If the program is sooner, they take the member for one that has left: what members wait for changes, and is
// published, too.)
func TestPartitionsWithOverwrittenMembers(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		log := new(locktest.Log)
		g := newShards(v.Fixture, 8)
		members := map[string]*shard{"one": g.join(v.Locks(log.Config), "one"), "two": g.join(v.Locks(), "two")}
		g.balanced(members["one"], members["two"])
		<-time.After(time.Minute) // nothing is published any more
		conn, list := v.Client(v), group.Members(v.LockPath)
		read := map[string]bool{} // a second ago, or longer
		overwrite := func() (fresh int) {
			for _, node := range v.Nodes(v, list) {
				if !read[node] {
					read[node] = true
					continue
				}
				if _, stat, err := conn.Get(list + "/" + node); err != nil || stat.Version > 0 {
					continue
				}
				if _, err := conn.Set(list+"/"+node, []byte("of another program"), 0); err == nil {
					fresh++
				}
			}
			return fresh
		}
		overwrite()
		if n := overwrite(); n != 2 {
			v.Errorf("%d nodes are overwritten", n)
		}
		reader := v.Locks().Partitions(v.LockPath, 8)
		if _, err := reader.Leader(locktest.Within(v), 0); !errors.Is(err, actors.ErrNoLeader) {
			v.Errorf("a process that reads the nodes knows a leader: %v", err)
		}
		<-time.After(time.Minute)
		g.agree(reader, members)
		writes := 0
		for range 600 {
			writes += overwrite()
			<-time.After(time.Second)
		}
		if writes < 30 || writes > 42 {
			v.Errorf("two members have published %d times in ten minutes", writes)
		}
		if n := len(log.With("WARN", "overwrites the node of a member", v.LockPath)); n != 1 {
			v.Errorf("%d lines of the log name the other program", n)
		}
		<-time.After(time.Minute)
		g.agree(v.Locks().Partitions(v.LockPath, 8), members)
		members["one"].leaves()
		members["two"].leaves()
	})
}

// A program that asks for the nodes of members, as for those of any lock, moves no partition: a member that leads
// keeps its node.
func TestPartitionsWithRevokedMembers(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		g := newShards(v.Fixture, 8)
		one, two := g.join(v.Locks(), "one"), g.join(v.Locks(), "two")
		g.balanced(one, two)
		<-time.After(45 * time.Second) // nothing is published any more
		nodes := v.Nodes(v, group.Members(v.LockPath))
		for _, node := range nodes {
			_, err := v.Locks().Revoke(locktest.Within(v), group.Members(v.LockPath)+"/"+node, 0)
			locktest.Must(v, err)
		}
		<-time.After(time.Minute)
		if now := v.Nodes(v, group.Members(v.LockPath)); !slices.Equal(now, nodes) {
			v.Errorf("the nodes of the members were %v, and are %v", nodes, now)
		}
		g.agree(v.Locks().Partitions(v.LockPath, 8), map[string]*shard{"one": one, "two": two})
		one.leaves()
		two.leaves()
	})
}

// A member of a later version is left out, and the log says so once.
func TestPartitionsWithALaterVersion(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		log := new(locktest.Log)
		g := newShards(v.Fixture, 8)
		one := g.join(v.Locks(log.Config), "one")
		g.balanced(one)
		for range 2 {
			_, err := v.Client(v).Create(group.Members(v.LockPath)+"/"+locktest.CuratorID+"-__READ__", []byte(`{"format":1}`), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			locktest.Must(v, err)
			<-time.After(time.Minute)
			if n := len(log.With("ERROR", "is left out", "format 1")); n != 1 {
				v.Errorf("%d lines of the log say that a member is left out", n)
			}
		}
		g.balanced(one)
		one.leaves()
	})
}
