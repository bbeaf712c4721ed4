package zkbridge

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The first use of many locks takes a few transactions and not one for each missing directory,
// because all directories that may be missing are looked for at once.
func TestManyMissingDirectories(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var count counter
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
		u.created(dir+"/there", "n-")
		u.settled()
		count.take()
		const n = 50
		u.together(func() {
			for i := range n {
				u.create(fmt.Sprintf("%s/%d", dir, i), "n-")
				u.create(dir+"/there", "n-")
			}
		})
		for range 2 * n {
			next[*messages.Created](t, u.peer)
		}
		if multis := count.take()[int32(embedded.OpMulti)]; multis > 2*n/3 {
			t.Errorf("%d directories took %d transactions", n, multis)
		}
	})
}

// A directory that is there is not made, which might take a right that is missing, although
// another one of the transaction is missing.
func TestMissingBesideDirectoryWithoutRight(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir+"/closed/lock", "n-")
		_, err := s.Client(t).SetACL(dir+"/closed", zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
		must(t, err)
		u.together(func() {
			u.create(dir+"/new", "n-")
			u.create(dir+"/closed/lock", "n-")
		})
		for range 2 {
			next[*messages.Created](t, u.peer)
		}
		_, err = s.Client(t).SetACL(dir+"/closed", zk.WorldACL(zk.PermAll), -1)
		must(t, err)
	})
}
