package embedded_test

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestACL(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		owner, other := s.Client(t), s.Client(t)
		path := s.Path(t)
		want(t, "auth", owner.AddAuth("digest", []byte("u:p")), nil)
		if _, err := owner.Create(path, nil, 0, zk.AuthACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, _, err := other.Get(path)
		want(t, "read", err, zk.ErrNoAuth)
		_, err = other.Set(path, nil, -1)
		want(t, "write", err, zk.ErrNoAuth)
		_, err = other.Create(path+"/x", nil, 0, open)
		want(t, "create", err, zk.ErrNoAuth)
		_, _, err = other.GetACL(path)
		want(t, "read the ACL", err, zk.ErrNoAuth)
		_, err = other.Create(path+"-2", nil, 0, zk.AuthACL(zk.PermAll))
		want(t, "without an identity", err, zk.ErrInvalidACL)

		list, stat, err := owner.GetACL(path)
		want(t, "list", fmt.Sprint(list, stat.Aversion, err), fmt.Sprint(zk.DigestACL(zk.PermAll, "u", "p"), 0, nil))
		list = append(list, zk.ACL{Perms: zk.PermRead, Scheme: "ip", ID: "127.0.0.0/8"})
		stat, err = owner.SetACL(path, list, 0)
		want(t, "set", fmt.Sprint(stat.Aversion, err), "1 <nil>")
		_, err = owner.SetACL(path, list, 0)
		want(t, "old version", err, zk.ErrBadVersion)
		_, _, err = other.Get(path)
		want(t, "read by address", err, nil)
		list, _, err = other.GetACL(path)
		want(t, "without the digest", fmt.Sprint(list, err), "[{31 digest u:x} {1 ip 127.0.0.0/8}] <nil>")
		want(t, "auth", other.AddAuth("digest", []byte("u:p")), nil)
		want(t, "delete", other.Delete(path, -1), nil) // which needs a permission of the parent
	})
}
