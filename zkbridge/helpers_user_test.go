package zkbridge

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// mailbox is a recipient that keeps its messages.
type mailbox chan any

func (m mailbox) Tell(msg any) { m <- msg }

// user stands for a lock actor: it sends requests to one bridge, and receives the answers. One
// goroutine uses it.
type user struct {
	mailbox
	seen   []any // messages that were read in search of another type
	t      testing.TB
	bridge *internals
	lastID uint64
	saw    map[string]bool // directories of nodes that were created
}

func newUser(t testing.TB, b *internals) *user {
	return &user{mailbox: make(mailbox, 1<<16), t: t, bridge: b, saw: map[string]bool{}}
}

// next returns the first T that the user has received and that next has not returned yet.
func next[T any](u *user) T {
	u.t.Helper()
	for i, msg := range u.seen {
		if m, ok := msg.(T); ok {
			u.seen = append(u.seen[:i], u.seen[i+1:]...)
			return m
		}
	}
	timeout := time.After(timeLimit)
	for {
		select {
		case msg := <-u.mailbox:
			if m, ok := msg.(T); ok {
				return m
			}
			u.seen = append(u.seen, msg)
		case <-timeout:
			u.t.Fatalf("no %v within %v, only %v", reflect.TypeFor[T](), timeLimit, u.seen)
		}
	}
}

// none fails the test if the user has received a T that next has not returned.
func none[T any](u *user) {
	u.t.Helper()
	for len(u.mailbox) > 0 {
		u.seen = append(u.seen, <-u.mailbox)
	}
	for _, msg := range u.seen {
		if m, ok := msg.(T); ok {
			u.t.Errorf("received %v, unexpectedly", m)
		}
	}
}

func (u *user) subscribe() { u.bridge.Ref().SendSubscribe(&messages.Subscribe{}, u) }

// waitState waits until the user, which has subscribed, has received the state.
func (u *user) waitState(want messages.SessionState) *messages.SessionChanged {
	u.t.Helper()
	for {
		if m := next[*messages.SessionChanged](u); m.GetState() == want {
			return m
		}
	}
}

// cutOff cuts the connection of the user, which has subscribed. The proxy refuses others until
// Refuse(false).
func (u *user) cutOff(proxy *zktest.TCPProxy) {
	u.t.Helper()
	proxy.Refuse(true)
	proxy.Cut()
	u.waitState(messages.SessionState_SUSPENDED)
}

// keepsSession fails the test unless the bridge is connected with its first session.
func (u *user) keepsSession() {
	u.t.Helper()
	if s := u.bridge.Session(); s.Epoch != 1 || s.State != messages.SessionState_CONNECTED {
		u.t.Errorf("the first session is over: %+v", s)
	}
}

func (u *user) id() uint64 { u.lastID++; return u.lastID }

func (u *user) epoch() uint64 { return u.bridge.Session().Epoch }

// failed waits for the failure of a request. Its detail must contain all parts.
func (u *user) failed(id uint64, reason messages.Reason, parts ...string) *messages.Failed {
	u.t.Helper()
	m := next[*messages.Failed](u)
	if m.GetId() != id || m.GetReason() != reason || m.GetEpoch() == 0 {
		u.t.Errorf("%v, not %v of request %d", m, reason, id)
	}
	for _, part := range parts {
		if !strings.Contains(m.GetDetail(), part) {
			u.t.Errorf("%q does not contain %q", m.GetDetail(), part)
		}
	}
	return m
}

// refused is failed, and the bridge keeps its session.
func (u *user) refused(id uint64, reason messages.Reason, parts ...string) {
	u.t.Helper()
	u.failed(id, reason, parts...)
	u.keepsSession()
}

// batch has all requests that send sends go in one transaction, if they fit.
func (u *user) batch(send func()) {
	sent := make(chan struct{})
	u.bridge.ref.Tell(task(func(*bridgeActor) { <-sent }))
	send()
	close(sent)
}

// runInActor has the bridge's actor run f, and waits for its end.
func (b *internals) runInActor(f func(*bridgeActor)) {
	done := make(chan struct{})
	b.ref.Tell(task(func(a *bridgeActor) {
		f(a)
		close(done)
	}))
	<-done
}

// openRequests returns the number of the requests that the bridge has not answered.
func (b *internals) openRequests() (n int) {
	b.runInActor(func(a *bridgeActor) { n = a.epoch.Open.Len() })
	return n
}

// flush waits until the bridge has sent the requests that it has received.
func (u *user) flush() { u.bridge.runInActor((*bridgeActor).Flush) }

// Requests. Those without a result of their own return their id.

func (u *user) create(directory, prefix string) uint64 {
	return u.sendCreate(&messages.Create{Directory: directory, Prefix: prefix})
}

// createInExisting is create in a directory that the sender takes for existing.
func (u *user) createInExisting(directory, prefix string) {
	u.saw[directory] = true
	u.sendCreate(&messages.Create{Directory: directory, Prefix: prefix, DirectoryExists: true})
}

func (u *user) sendCreate(msg *messages.Create) uint64 {
	msg.Id, msg.Epoch, msg.DirectorySeen = u.id(), u.epoch(), u.saw[msg.Directory]
	u.bridge.Ref().SendCreate(msg, u)
	return msg.Id
}

// expectDirectories has the bridge expect that directories exist which the session has not seen.
func (u *user) expectDirectories(s *zktest.Server) {
	u.t.Helper()
	dir := s.Path(u.t) + "-existing"
	makeNode(u.t, s.Client(u.t), dir, "")
	for range 4 {
		u.created(dir, "n-")
		delete(u.saw, dir)
	}
	u.lastID = 0
}

// created creates a node, and waits for the answer.
func (u *user) created(directory, prefix string) *messages.Created {
	u.t.Helper()
	id := u.create(directory, prefix)
	m := next[*messages.Created](u)
	if m.GetId() != id || m.GetEpoch() != u.epoch() {
		u.t.Errorf("Created answers %d of epoch %d, not %d of epoch %d", m.GetId(), m.GetEpoch(), id, u.epoch())
	}
	u.saw[directory] = true
	return m
}

func (u *user) release(directory, node string) uint64 {
	return u.sendRelease(&messages.ReleaseNode{Directory: directory, Node: node})
}

func (u *user) sendRelease(msg *messages.ReleaseNode) uint64 {
	msg.Id, msg.Epoch = u.id(), u.epoch()
	u.bridge.Ref().SendReleaseNode(msg, u)
	return msg.Id
}

// list returns the names of a directory's nodes.
func (u *user) list(directory string) []string {
	u.t.Helper()
	return u.listed(&messages.List{Directory: directory}).GetChildren()
}

func (u *user) listed(msg *messages.List) *messages.Listed {
	u.t.Helper()
	msg.Id, msg.Epoch = u.id(), u.epoch()
	u.bridge.Ref().SendList(msg, u)
	m := next[*messages.Listed](u)
	if m.GetId() != msg.Id {
		u.t.Errorf("%v does not answer %v", m, msg)
	}
	return m
}

func (u *user) watch(directory string, nodes ...string) *messages.Watched {
	u.t.Helper()
	u.bridge.Ref().SendWatch(&messages.Watch{Id: u.id(), Epoch: u.epoch(), Directory: directory, Nodes: nodes}, u)
	return next[*messages.Watched](u)
}

// waitDeleted waits for one Wake of the deletion of each node.
func (u *user) waitDeleted(nodes []string) {
	u.t.Helper()
	missing := map[string]bool{}
	for _, node := range nodes {
		missing[node] = true
	}
	for range nodes {
		m := next[*messages.Wake](u)
		if !m.GetDeleted() || !missing[m.GetNode()] {
			u.t.Errorf("%v, which was not expected", m)
		}
		delete(missing, m.GetNode())
	}
}

// waitDirectoryWake waits for the Wake of a directory, which must be the only one.
func (u *user) waitDirectoryWake(directory string, deleted bool) {
	u.t.Helper()
	m := next[*messages.Wake](u)
	if m.GetEpoch() != u.epoch() || m.GetDirectory() != directory || m.GetNode() != "" || m.GetDeleted() != deleted {
		u.t.Errorf("%v, not one of %s, deleted %v", m, directory, deleted)
	}
	u.noWake()
}

// noWake fails the test if the user has received a Wake that next has not returned.
func (u *user) noWake() {
	u.t.Helper()
	u.list("/") // a Wake that is on its way arrives before the answer
	none[*messages.Wake](u)
}

func (u *user) transact(ops ...*messages.Op) uint64 {
	id := u.id()
	u.bridge.Ref().SendTransact(&messages.Transact{Id: id, Epoch: u.epoch(), Ops: ops}, u)
	return id
}

// transacted sends a transaction, and waits for the answer.
func (u *user) transacted(ops ...*messages.Op) *messages.Transacted {
	u.t.Helper()
	id := u.transact(ops...)
	m := next[*messages.Transacted](u)
	if m.GetId() != id || m.GetEpoch() != u.epoch() {
		u.t.Errorf("%v does not answer %d of epoch %d", m, id, u.epoch())
	}
	return m
}

func check(path string) *messages.Op { return &messages.Op{Path: path} }

func makeOp(path, data string) *messages.Op {
	return &messages.Op{Kind: messages.Op_CREATE, Path: path, Data: []byte(data)}
}

func setOp(path, data string) *messages.Op {
	return &messages.Op{Kind: messages.Op_SET, Path: path, Data: []byte(data)}
}

func deleteOp(path string) *messages.Op {
	return &messages.Op{Kind: messages.Op_DELETE, Path: path}
}

func (u *user) exists(path string) (zk.Stat, bool, error) {
	view, err := u.bridge.GetNode(within(u.t), path)
	return view.Stat, view.Exists, err
}
