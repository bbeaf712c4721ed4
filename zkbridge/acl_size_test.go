package zkbridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// longACL returns an ACL of n bytes or a little more in a message.
func longACL(n int) []ACL {
	acl := zk.WorldACL(zk.PermAll)
	for i := 0; zkconn.ACLBytes(acl) < n; i++ {
		acl = append(acl, zk.ACL{Perms: zk.PermRead, Scheme: "digest", ID: fmt.Sprintf("user%d:%s", i, strings.Repeat("x", 100))})
	}
	return acl
}

// A transaction has no more creates than go into a message with their ACLs.
func TestLongACL(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr(), ACL: longACL(40 << 10)})
		u, dir := newUser(t, b), s.Path(t)
		u.created(dir, "first-")
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		const n = 40
		u.batch(func() {
			for range n {
				u.create(dir, "n-")
			}
		})
		for range n {
			next[*messages.Created](u)
		}
		none[*messages.SessionChanged](u) // the server has hung up on none of the messages
		none[*messages.Failed](u)
		if nodes := s.Nodes(t, dir); len(nodes) != n+1 {
			t.Errorf("%d nodes", len(nodes))
		}
		parts := func() []*Create {
			all := make([]*Create, 3*MaxAtomicCreates/2)
			for i := range all {
				all[i] = u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: 1, Directory: dir, Prefix: fmt.Sprintf("each%d-", i), Data: make([]byte, 16<<10)})
			}
			return all
		}
		each := parts()
		b.CreateEach(each)
		var last *messages.Created
		for range each {
			m := next[*messages.Created](u)
			if last != nil && (m.Czxid < last.Czxid || m.Id < last.Id) {
				t.Errorf("%v after %v", m, last)
			}
			last = m
		}
		b.CreateAtomically(parts())
		for range each {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID {
				t.Error(m)
			}
		}
		none[*messages.SessionChanged](u)
	})
	system := host.NewSystem(nil, nil)
	defer system.Close()
	if _, err := Open(system, Config{Servers: "localhost", ACL: longACL(100 << 10)}); err == nil || !strings.Contains(err.Error(), "the limit is 65536") {
		t.Error(err)
	}
}
