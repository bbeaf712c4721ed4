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
// because the bridge checks at once all directories that may be missing.
func TestManyMissingDirectories(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		u.created(dir+"/there", "n-")
		u.flush()
		d.take()
		const n = 50
		u.batch(func() {
			for i := range n {
				u.create(fmt.Sprintf("%s/%d", dir, i), "n-")
				u.create(dir+"/there", "n-")
			}
		})
		for range 2 * n {
			next[*messages.Created](u)
		}
		if multis := d.take()[embedded.OpMulti]; multis > 2*n/3 {
			t.Errorf("%d directories took %d transactions", n, multis)
		}
	})
}

// The bridge makes only the missing ones of a transaction's directories, because to make another
// one may take a right that is missing.
func TestMissingBesideDirectoryWithoutRight(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir+"/closed/lock", "n-")
		conn := s.Client(t)
		setRights(t, conn, dir+"/closed", zk.PermRead|zk.PermAdmin)
		u.batch(func() {
			u.create(dir+"/new", "n-")
			u.create(dir+"/closed/lock", "n-")
		})
		for range 2 {
			next[*messages.Created](u)
		}
		setRights(t, conn, dir+"/closed", zk.PermAll)
	})
}
