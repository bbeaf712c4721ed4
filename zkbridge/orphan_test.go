package zkbridge

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// lostBecause is saysLost, and no node of the old session is left.
func (u *user) lostBecause(s *zktest.Server, dir string, parts ...string) {
	u.t.Helper()
	u.saysLost(parts...)
	zktest.Eventually(u.t, patience, func() bool { return len(s.Nodes(u.t, dir)) == 0 }, "no node is left in %s", dir)
}

// saysLost waits for LOST, which must say each of the parts, and for the next session.
func (u *user) saysLost(parts ...string) {
	u.t.Helper()
	m := state(u.t, u.peer, messages.SessionState_LOST)
	for _, part := range parts {
		if !strings.Contains(m.GetDetail(), part) {
			u.t.Errorf("lost because %q, which does not say %q", m.GetDetail(), part)
		}
	}
	if m := state(u.t, u.peer, messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
		u.t.Errorf("%v", m)
	}
}

// without takes a right on a node away, as another client.
func without(t *testing.T, s *zktest.Server, path string, right int32) {
	t.Helper()
	_, err := s.Client(t).SetACL(path, zk.WorldACL(zk.PermAll&^right), -1)
	must(t, err)
}

func TestReleaseRefused(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.subscribe()
		node, other := u.created(dir, "n-").GetNode(), u.created(dir, "other-").GetNode()
		without(t, s, dir, zk.PermDelete)
		id := u.release(dir, node)
		u.lostBecause(s, dir, dir+"/"+node, "DELETE is not granted on "+dir)
		if m := next[*messages.Failed](t, u.peer); m.GetId() != id || m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("%v", m)
		}
		u.release(dir, other) // of the session before, in this one
		next[*messages.NodeReleased](t, u.peer)
	})
}

func TestReleaseRefusedInBatch(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.subscribe()
		const n = 50
		nodes := make([]string, n)
		for i := range nodes {
			nodes[i] = u.created(dir, "n-").GetNode()
		}
		without(t, s, dir, zk.PermDelete)
		epoch := u.epoch() // it may be over before all have been sent
		for _, node := range nodes {
			u.bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: u.id(), Epoch: epoch, Directory: dir, Node: node}, u)
		}
		u.lostBecause(s, dir, "DELETE")
		for range n {
			if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_SESSION_LOST {
				t.Errorf("%v", m)
			}
		}
	})
}

// TestForeignNode asks for what is not the bridge's: that is no reason to end the
// session.
func TestForeignNode(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermDelete))
		must(t, err)
		_, err = s.Client(t).Create(dir+"/foreign", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.release(dir, "foreign")
		m := next[*messages.Failed](t, u.peer)
		if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "DELETE is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		if u.epoch() != 1 {
			t.Errorf("the session was given up")
		}
	})
}

// dropping is a client that loses the answers of creates, once.
func dropping() *faulty {
	var dropped atomic.Bool
	return &faulty{multi: func(ops []any, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
		results, err := send()
		if isCheck(ops) || dropped.Swap(true) {
			return results, err
		}
		return nil, zk.ErrConnectionClosed
	}}
}

func TestUncertainAndReadsDenied(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		dir := s.Path(t)
		newUser(t, connected(t, Config{Servers: s.Addr()})).created(dir, "first-")
		u := withFaults(t, s, dropping())
		u.subscribe()
		without(t, s, dir, zk.PermRead)
		u.create(dir, "n-")
		m := state(t, u.peer, messages.SessionState_LOST)
		if !strings.Contains(m.GetDetail(), dir+"/n-") || !strings.Contains(m.GetDetail(), "READ is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("%v", m)
		}
		state(t, u.peer, messages.SessionState_CONNECTED)
		without(t, s, dir, 0)
		zktest.Eventually(t, patience, func() bool { return len(s.Nodes(t, dir)) == 1 }, "only the other bridge's node is left")
	})
}

// TestUncertainForTooLong has a server that never gives a clear answer.
func TestUncertainForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		f := dropping()
		lose := f.multi
		f.multi = func(ops []any, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
			if isCheck(ops) {
				return nil, serverError(-5)
			}
			return lose(ops, send)
		}
		u := withFaultsAnd(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: dialEmbedded(s)}, f)
		u.subscribe()
		begun := time.Now()
		u.create("/d", "n-")
		u.saysLost("/d/n-", "-5")
		if took := time.Since(begun); took < unresolvedFor*timeout || took > unresolvedFor*timeout+2*retryPause {
			t.Errorf("given up after %v", took)
		}
		next[*messages.Failed](t, u.peer)
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
	})
}

// TestUnreadable has a directory that nodes may be made in and not listed.
func TestUnreadable(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, []byte("theirs"), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.created(dir, "first-")
		without(t, s, dir, zk.PermRead)
		u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir, Prefix: "n-", Look: true}, u)
		if m := next[*messages.Created](t, u.peer); m.GetDirectoryCzxid() != 0 || m.GetCzxid() == 0 {
			t.Errorf("%v", m)
		}
		without(t, s, dir, 0)
		if names := s.Nodes(t, dir); len(names) != 2 || u.epoch() != 1 {
			t.Errorf("left: %v", names)
		}
	})
}
