package zkbridge

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// faulty is a client whose calls may fail without a fault in the connection.
type faulty struct {
	zkconn.Client
	multi     func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error)
	container func() error
	children  func() error
	exists    func() error
	remove    func() error // instead of a delete
	read      func()       // before a Get or Exists
	ephemeral func() error
	rewatch   func() // before watches are set again
}

func (f *faulty) SetWatches(over *zkconn.Conn, nodes, directories []string) {
	if f.rewatch != nil {
		f.rewatch()
	}
	f.Client.SetWatches(over, nodes, directories)
}

func (f *faulty) Multi(ops []zkconn.Op, then zkconn.Callback[[]zk.MultiResponse]) {
	if f.multi == nil {
		f.Client.Multi(ops, then)
		return
	}
	go func() {
		then(f.multi(ops, func() ([]zk.MultiResponse, error) { return zkconn.Multi(f.Client, ops...) }))
	}()
}

func (f *faulty) CreateContainer(path string) error {
	if f.container != nil {
		if err := f.container(); err != nil {
			return err
		}
	}
	return f.Client.CreateContainer(path)
}

func (f *faulty) List(path string, watch bool, then zkconn.Callback[zkconn.Listing]) {
	if f.children != nil {
		if err := f.children(); err != nil {
			then(zkconn.Listing{}, err)
			return
		}
	}
	f.Client.List(path, watch, then)
}

func (f *faulty) Delete(path string, then zkconn.Callback[[]zk.MultiResponse]) {
	if f.remove != nil {
		if err := f.remove(); err != nil {
			then(nil, err)
			return
		}
	}
	f.Client.Delete(path, then)
}

func (f *faulty) Get(path string, watch bool, then zkconn.Callback[zkconn.Content]) {
	if f.read != nil && !watch {
		f.read()
	}
	f.Client.Get(path, watch, then)
}

func (f *faulty) Ephemerals(prefix string) ([]string, error) {
	if f.ephemeral != nil {
		if err := f.ephemeral(); err != nil {
			return nil, err
		}
	}
	return f.Client.Ephemerals(prefix)
}

func (f *faulty) Exists(path string, watch bool) (zk.Stat, bool, error) {
	if f.read != nil && !watch {
		f.read()
	}
	if f.exists != nil && !watch {
		if err := f.exists(); err != nil {
			return zk.Stat{}, false, err
		}
	}
	return f.Client.Exists(path, watch)
}

// withFaults is a user of a bridge with that client.
func withFaults(t *testing.T, s *zktest.Server, f *faulty) *user {
	return withFaultsAnd(t, Config{Servers: s.Addr()}, f)
}

func withFaultsAnd(t *testing.T, cfg Config, f *faulty) *user {
	b := connected(t, cfg)
	done := make(chan struct{})
	b.ref.Tell(task(func(c *bridgeActor) {
		f.Client = c.epoch.client
		c.epoch.client = f
		close(done)
	}))
	<-done
	return newUser(t, b)
}

// once returns err the first time, and nil then.
func once(err error) func() error {
	var given atomic.Bool
	return func() error {
		if given.Swap(true) {
			return nil
		}
		return err
	}
}

func isCheck(ops []zkconn.Op) bool { return ops[0].Kind == zkconn.OpCheck }

func TestInconclusiveAnswer(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	for _, executed := range []bool{true, false} {
		fail := once(zk.ErrAPIError)
		u := withFaults(t, s, &faulty{multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
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
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
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
		u := withFaultsAnd(t, Config{Servers: "embedded:1", Dial: s.Dial}, &faulty{multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
			if isCheck(ops) {
				return send()
			}
			return nil, zk.ErrAPIError
		}})
		u.create("/d", "n-")
		if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_UNAVAILABLE {
			t.Errorf("%v", m)
		}
		if strings.Contains(s.Dump(), "/n-") {
			t.Errorf("left:\n%s", s.Dump())
		}
	})
}

// TestUnnamedFailedOp has a server that refuses transactions of many as a whole.
func TestUnnamedFailedOp(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := withFaults(t, s, &faulty{multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
		if len(ops) > 2 {
			return nil, zk.ErrBadArguments
		}
		return send()
	}})
	dir := s.Path(t)
	node := u.created(dir, "n-").GetNode()
	for range 50 {
		u.create(dir, "n-")
	}
	u.release(dir, node)
	for range 50 {
		next[*messages.Created](t, u.peer)
	}
	next[*messages.NodeReleased](t, u.peer)
}

func TestNeverSent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	fail := once(zk.ErrNoServer)
	u := withFaults(t, s, &faulty{
		multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
			if err := fail(); err != nil {
				return nil, err
			}
			return send()
		},
		container: once(zk.ErrConnectionClosed),
		children:  once(zk.ErrNoServer),
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
	for _, refusal := range []error{zkconn.ServerError(-6), zk.ErrBadArguments} {
		s := zktest.Embedded(t)
		u := withFaults(t, s, &faulty{container: func() error { return refusal }})
		dir := s.Path(t) + "/deep"
		u.created(dir, "n-")
	}
}

// A server hangs up on createContainer, as one does that does not know it: after some
// times the bridge makes persistent nodes, and says so once.
func TestHangsUpOnContainers(t *testing.T) {
	t.Parallel()
	var log record
	s := zktest.Embedded(t)
	fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreateContainer, Action: embedded.CutBefore, Times: -1})
	u, dir := newUser(t, connected(t, log.of(t, Config{Servers: s.Addr()}))), s.Path(t)
	for _, directory := range []string{dir + "/a", dir + "/b", dir + "/c"} {
		u.created(directory, "n-")
	}
	if n := len(fault.Firings()); n != zkconn.MaxHangups {
		t.Errorf("hung up on %d times", n)
	}
	if n := strings.Count(log.String(), "hangs up on createContainer"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	u.goesOn()
}

// One cut, or several with a container made between, are no reason to do without containers,
// nor are sessions that end while one is made.
func TestHangUpsBetweenContainers(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.created(dir, "n-")
	for i := range zkconn.MaxHangups + 1 {
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreateContainer, Action: embedded.CutBefore})
		u.created(fmt.Sprint(dir, "/", i), "n-")
		fired(t, fault)
	}
	u.subscribe()
	ended := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreateContainer, Action: embedded.ExpireSession, Times: 2 * zkconn.MaxHangups})
	for len(ended.Firings()) < 2*zkconn.MaxHangups {
		state(t, u.peer, messages.SessionState_CONNECTED)
		u.create(dir+"/more", "n-")
		next[*messages.Failed](t, u.peer)
	}
	if u.bridge.cfg.Containers.IsUnknown() {
		t.Error("there are no more containers")
	}
}

func TestReadRefused(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	node := u.created(dir, "n-").GetNode()
	for _, path := range []string{dir, dir + "/" + node} {
		_, err := s.Client(t).SetACL(path, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		must(t, err)
	}
	for _, msg := range []any{
		&messages.List{Epoch: 1, Directory: dir},
		&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}},
	} {
		u.bridge.ref.Tell(msg) // not answered: there is no sender
		ask.Send(u.bridge.ref, msg, u)
		if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_NO_AUTH {
			t.Errorf("%v", m)
		}
	}
	if n := s.Watches(t); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
