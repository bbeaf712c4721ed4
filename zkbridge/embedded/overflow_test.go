package embedded_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A sequence number does not grow beyond 2^31-1, since ZooKeeper 3.6, but wraps within a multi.
func TestSequenceOverflow(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB, ...zktest.ServerOption) *zktest.Server{
		"embedded": zktest.Embedded, "zookeeper": zktest.Own,
	} {
		t.Run(name, func(t *testing.T) { sequenceOverflow(t, server(t)) })
	}
}

func sequenceOverflow(t *testing.T, s *zktest.Server) {
	_, err := s.Client(t).Create("/q", nil, 0, open)
	want(t, "create", err, nil)
	s.SetCreateCount(t, "/q", math.MaxInt32-1)
	c := s.Client(t)
	var got []string
	for i := range 3 {
		path, err := c.Create(fmt.Sprintf("/q/%c-", 'a'+i), nil, zk.FlagSequence, open)
		want(t, "create", err, nil)
		got = append(got, path)
	}
	want(t, "one by one", got, "[/q/a-2147483646 /q/b-2147483647 /q/c-2147483647]")
	_, err = c.Create("/q/c-", nil, zk.FlagSequence, open)
	want(t, "duplicate", err, zk.ErrNodeExists)
	_, before, _ := c.Get("/q")
	for range 2 { // the number is the same each time
		m := &zk.CreateRequest{Path: "/q/m-", Acl: open, Flags: zk.FlagSequence | zk.FlagEphemeral}
		rsp, err := c.Multi(m, m, m)
		want(t, "multi", err, nil)
		want(t, "in a multi", rsp[0].String+rsp[1].String+rsp[2].String, "/q/m-2147483647/q/m--2147483648/q/m--2147483647")
		_, after, _ := c.Get("/q")
		want(t, "pzxid does not change", after.Pzxid, before.Pzxid)
		want(t, "cversion", fmt.Sprint(after.Cversion, after.NumChildren), "-8 6")
		for _, r := range rsp {
			want(t, "delete", c.Delete(r.String, -1), nil)
		}
		_, before, _ = c.Get("/q")
	}
}

func TestSetCreateCountOfMissingNode(t *testing.T) {
	s := embedded.Run(t)
	want(t, "no such node", s.SetCreateCount("/none", 1), false)
}
