package api

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Two identities share locks. If an operator has prepared /actorlock as the README says, both can
// create a session node, and so nodes by transactions. Otherwise only the first can.
func TestTwoIdentities(t *testing.T) {
	for name, prepared := range map[string]bool{"prepared": true, "not prepared": false} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				make := func(path string, perms int32) {
					_, err := conn.Create(path, nil, 0, zk.WorldACL(perms))
					locktest.Must(b, err)
				}
				chroot := b.LockPath
				make(chroot, zk.PermAll)
				if prepared {
					make(chroot+"/actorlock", zk.PermCreate|zk.PermRead)
				}
				make(chroot+"/orders", zk.PermCreate|zk.PermDelete|zk.PermRead)
				b.LockPath += "/orders"
				identity := func(user string) (*actors.Mutex, *locktest.Network) {
					d := &locktest.Network{}
					locks := locktest.Connect(b.T, b.Addr()+chroot, d.Config, func(cfg *actors.Config) {
						cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: user + ":secret"}}
						cfg.ACL = append(zkbridge.CreatorAll(), zk.WorldACL(zk.PermRead)...)
					})
					return locks.Mutex("/orders"), d
				}
				alice, hers := identity("alice")
				bob, his := identity("bob")
				for _, by := range []struct {
					mu   *actors.Mutex
					d    *locktest.Network
					fast bool
				}{{alice, hers, true}, {bob, his, prepared}} {
					locktest.Unlock(b, locktest.Lock(b, by.mu)) // which shows the directory
					_, ops := by.d.During(func() { locktest.Unlock(b, locktest.Lock(b, by.mu)) })
					if fast := ops[embedded.OpMulti] == 1 && ops[embedded.OpCreate2] == 0; fast != by.fast {
						b.Errorf("a lock and its release took %v", ops)
					}
				}
				g := locktest.Lock(b, alice)
				f := bob.Acquire(context.Background())
				b.WaitNodes(2)
				locktest.Unlock(b, g)
				locktest.Unlock(b, locktest.Result(b, f))
			})
		})
	}
}
