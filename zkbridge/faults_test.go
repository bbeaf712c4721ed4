package zkbridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestInconclusiveAnswer(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	for _, executed := range []bool{true, false} {
		fail := once(zk.ErrAPIError)
		u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			err := fail()
			if err == nil {
				return send()
			}
			if executed {
				send()
			}
			return nil, err
		}})
		dir := s.Path(t)
		makeNode(t, s.Client(t), dir, "")
		u.saw[dir] = true
		m := u.created(dir, "n-")
		if names := s.Nodes(t, dir); len(names) != 1 || (len(m.GetChildren()) > 0) != executed {
			t.Errorf("executed %v: %v with nodes %v", executed, m, names)
		}
	}
}

func TestAlwaysInconclusive(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: time.Minute})
		u := userOfFaulty(t, Config{Servers: "embedded:1", Dial: s.Dial}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if isCheck(ops) {
				return send()
			}
			return nil, zk.ErrAPIError
		}})
		u.create("/d", "n-")
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_UNAVAILABLE {
			t.Errorf("%v", m)
		}
		if strings.Contains(s.Dump(), "/n-") {
			t.Errorf("left:\n%s", s.Dump())
		}
	})
}

// The bridge splits a transaction that the server refuses without naming the failed operation.
func TestUnnamedFailedOp(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		if len(ops) > 2 {
			return nil, zk.ErrBadArguments
		}
		return send()
	}})
	dir := s.Path(t)
	makeNode(t, s.Client(t), dir, "")
	u.saw[dir] = true
	node := u.created(dir, "n-").GetNode()
	for range 50 {
		u.create(dir, "n-")
	}
	u.release(dir, node)
	for range 50 {
		next[*messages.Created](u)
	}
	next[*messages.NodeReleased](u)
}

func TestNeverSent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	fail := once(zk.ErrNoServer)
	u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{
		multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if err := fail(); err != nil {
				return nil, err
			}
			return send()
		},
		createContainer: once(zk.ErrConnectionClosed),
		list:            once(zk.ErrNoServer),
	})
	dir := s.Path(t)
	if m := u.created(dir, "n-"); m.GetDirectoryCzxid() == 0 {
		t.Errorf("%v", m)
	}
	if names := u.list(dir); len(names) != 1 {
		t.Errorf("%v", names)
	}
}

func TestNoContainers(t *testing.T) {
	t.Parallel()
	// A refusal of the transaction as a whole, or of its first operation.
	whole := func(refusal error) multiFunc {
		return func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if ops[0].Kind == zkconn.OpContainer {
				return nil, refusal
			}
			return send()
		}
	}
	named := func(refusal error) multiFunc {
		return func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if ops[0].Kind == zkconn.OpContainer {
				results := make([]zk.MultiResponse, len(ops))
				results[0].Error = refusal
				return results, refusal
			}
			return send()
		}
	}
	for _, refusal := range []error{zkconn.ServerError(-6), zk.ErrBadArguments} {
		for _, multi := range []multiFunc{whole(refusal), named(refusal)} {
			s := zktest.Embedded(t)
			u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: multi, createContainer: func() error { return refusal }})
			dir := s.Path(t) + "/deep"
			u.created(dir, "n-")
			u.created(dir+"/deeper", "n-")
		}
	}
}

// A server that does not know containers hangs up. After some messages over connections of their own, the bridge
// creates persistent nodes, and logs that once.
func TestServerHangsUpOnContainers(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		var log bridgeLog
		s := zktest.Virtual(t)
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreateContainer, Action: embedded.CutBefore, Times: -1})
		u, dir := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr(), Dial: s.Dial}))), s.Path(t)
		for _, directory := range []string{dir, dir + "-b", dir + "/below/c"} {
			u.created(directory, "n-")
		}
		if n := len(fault.Firings()); n != 4 {
			t.Errorf("hung up on %d times", n)
		}
		if n := strings.Count(log.String(), "does not know containers"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		u.keepsSession()
	})
}

// The bridge goes on creating containers after one cut, after several with a container between
// them, and after sessions that end during such a request.
func TestHangUpsBetweenContainers(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial})), s.Path(t)
		u.created(dir, "n-")
		const hangUps = 5
		for i := range hangUps {
			fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: fmt.Sprint(dir, "/", i, "/"), Action: embedded.CutBefore})
			u.created(fmt.Sprint(dir, "/", i), "n-")
			waitFired(t, fault)
		}
		u.subscribe()
		ended := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: dir + "/more", Action: embedded.ExpireSession, Times: hangUps})
		for len(ended.Firings()) < hangUps {
			u.waitState(messages.SessionState_CONNECTED)
			u.create(dir+"/more", "n-")
			next[*messages.Failed](u)
		}
		if unknown := u.bridge.cfg.UnknownRequests(); len(unknown) > 0 {
			t.Errorf("%v are not sent any more", unknown)
		}
	})
}

func TestReadRefused(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	node := u.created(dir, "n-").GetNode()
	for _, path := range []string{dir, dir + "/" + node} {
		setRights(t, s.Client(t), path, zk.PermAll&^zk.PermRead)
	}
	for _, msg := range []any{
		&messages.List{Epoch: 1, Directory: dir},
		&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}},
	} {
		u.bridge.ref.Tell(msg) // not answered, for want of a sender
		ask.Send(u.bridge.ref, msg, u)
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_NO_AUTH {
			t.Errorf("%v", m)
		}
	}
	if n := s.Watches(t); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
