package zkbridge

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestTransact(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		data := makeOp(dir+"/n", "one")
		m := u.transacted(makeOp(dir, ""), data, check(dir+"/n"), setOp(dir+"/n", "two"),
			&messages.Op{Kind: messages.Op_CREATE, Path: dir + "/mine", Ephemeral: true}, makeOp(dir+"/gone", ""), deleteOp(dir+"/gone"))
		if m.GetOutcome() != messages.Transacted_DONE || m.GetOp() != 0 {
			t.Errorf("%v", m)
		}
		got, stat, err := conn.Get(dir + "/n")
		if string(got) != "two" || stat.Version != 1 || stat.EphemeralOwner != 0 || err != nil {
			t.Errorf("%q, %+v, %v", got, stat, err)
		}
		if _, stat, err := conn.Get(dir + "/mine"); err != nil || stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%+v, %v", stat, err)
		}
		for _, c := range []struct {
			op   *messages.Op
			want messages.Transacted_Outcome
		}{
			{check(dir + "/none"), messages.Transacted_NO_NODE},
			{setOp(dir+"/none", "x"), messages.Transacted_NO_NODE},
			{deleteOp(dir + "/none"), messages.Transacted_NO_NODE},
			{makeOp(dir+"/none/below", ""), messages.Transacted_NO_NODE},
			{makeOp(dir+"/n", "x"), messages.Transacted_NODE_EXISTS},
			{deleteOp(dir), messages.Transacted_NOT_EMPTY},
		} {
			m := u.transacted(setOp(dir+"/n", "never"), check(dir), c.op, makeOp(dir+"/never", ""))
			if m.GetOutcome() != c.want || m.GetOp() != 2 {
				t.Errorf("%v: %v", c.op, m)
			}
		}
		if got, _, err := conn.Get(dir + "/n"); string(got) != "two" || err != nil {
			t.Errorf("%q, %v: a failed transaction has changed data", got, err)
		}
		if names := s.Nodes(t, dir); len(names) != 2 {
			t.Errorf("nodes %v", names)
		}
		for _, op := range []*messages.Op{setOp(dir+"/n", ""), {Kind: messages.Op_SET, Path: dir + "/n"}} {
			if m := u.transacted(op); m.GetOutcome() != messages.Transacted_DONE {
				t.Errorf("%v", m)
			}
		}
		if u.bridge.openRequests() != 0 {
			t.Error("answered requests are kept as open")
		}
	})
}

func TestTransactRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		u.transacted(makeOp(dir, ""), makeOp(dir+"/n", ""),
			&messages.Op{Kind: messages.Op_CREATE, Path: dir + "/leaf", Ephemeral: true})
		for _, path := range []string{dir, dir + "/n"} {
			setRights(t, conn, path, zk.PermAdmin)
		}
		good := check("/")
		for _, c := range []struct {
			op     *messages.Op
			want   messages.Reason
			detail string
		}{
			{check(dir + "/n"), messages.Reason_NO_AUTH, "READ is not granted on " + dir + "/n"},
			{makeOp(dir+"/x", ""), messages.Reason_NO_AUTH, "CREATE is not granted on " + dir},
			{setOp(dir+"/n", "x"), messages.Reason_NO_AUTH, "WRITE is not granted on " + dir + "/n"},
			{deleteOp(dir + "/n"), messages.Reason_NO_AUTH, "DELETE is not granted on " + dir},
			{makeOp(dir+"/leaf/x", ""), messages.Reason_INVALID, dir + "/leaf/x"},
		} {
			u.failed(u.transact(good, c.op), c.want, c.detail, "operation 1 ")
		}
		for _, c := range []struct {
			ops    []*messages.Op
			detail string
		}{
			{nil, "needs an operation"},
			{[]*messages.Op{good, nil}, "operation 1"},
			{[]*messages.Op{good, {Kind: 9, Path: "/a"}}, "operation 1: kind 9"},
			{[]*messages.Op{check("a")}, `path "a"`},
			{[]*messages.Op{deleteOp("/")}, "root"},
			{[]*messages.Op{setOp("/", strings.Repeat("x", zkconn.MaxRequest))}, "limit is 524288"},
		} {
			u.failed(u.transact(c.ops...), messages.Reason_INVALID, c.detail)
		}
	})
}

// The bridge sends a request as soon as it is connected, and never in another session.
func TestTransactOverSessions(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t)
		u.subscribe()
		u.cutOff(proxy)
		id := u.transact(makeOp(dir, ""))
		proxy.Refuse(false)
		if m := next[*messages.Transacted](u); m.GetId() != id || m.GetOutcome() != messages.Transacted_DONE {
			t.Errorf("%v", m)
		}
		u.waitState(messages.SessionState_CONNECTED)
		u.cutOff(proxy)
		id = u.transact(makeOp(dir+"/late", ""))
		s.Expire(t, u.bridge.Session().ID)
		proxy.Refuse(false)
		u.failed(id, messages.Reason_SESSION_LOST)
		u.waitState(messages.SessionState_CONNECTED)
		for _, epoch := range []uint64{1, 3} {
			u.bridge.Ref().SendTransact(&messages.Transact{Id: 90, Epoch: epoch, Ops: []*messages.Op{makeOp(dir+"/late", "")}}, u)
			u.failed(90, messages.Reason_SESSION_LOST)
		}
		if names := s.Nodes(t, dir); len(names) != 0 {
			t.Errorf("nodes %v", names)
		}
		must(t, u.bridge.Close())
		u.failed(u.transact(makeOp(dir+"/late", "")), messages.Reason_CLOSED)
	})
}

// The bridge makes a missing directory, and answers with the czxid of the written node.
func TestTransactMakesDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)+"/in/it", s.Client(t)
		in := func(ops ...*messages.Op) *messages.Transacted {
			u.bridge.Ref().SendTransact(&messages.Transact{Id: u.id(), Epoch: u.epoch(), Ops: ops, Directory: dir}, u)
			return next[*messages.Transacted](u)
		}
		m := in(makeOp(dir+"/n", "one"), setOp(dir+"/n", "two"))
		data, stat, err := conn.Get(dir + "/n")
		if m.GetOutcome() != messages.Transacted_DONE || string(data) != "two" || m.GetCzxid() != stat.Czxid || err != nil {
			t.Errorf("%v; %q %+v, %v", m, data, stat, err)
		}
		if m := in(setOp(dir+"/n", "")); m.GetCzxid() != stat.Czxid {
			t.Errorf("%v, czxid %d", m, stat.Czxid)
		}
		if m := in(makeOp(dir+"/m", ""), check(dir+"/none")); m.GetOutcome() != messages.Transacted_NO_NODE || m.GetOp() != 1 || m.GetCzxid() != 0 {
			t.Errorf("%v", m)
		}
		u.bridge.Ref().SendTransact(&messages.Transact{Id: 90, Epoch: u.epoch(), Ops: []*messages.Op{check("/")}, Directory: "no path"}, u)
		u.failed(90, messages.Reason_INVALID)
	})
}
