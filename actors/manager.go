package actors

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// manager starts the actors of locks: one for each path. It is the only place that
// does, since protoactor cannot spawn one name from two.
type manager struct {
	system *host.System
	zk     *zkbridge.Bridge
	bridge messages.BridgeRef // of zk
	log    *slog.Logger
	idle   time.Duration // how long an unused lock keeps its actor
	tick   time.Duration // how often a lock looks at what lasts
	name   string        // prefix of the actors' names

	limits          limits
	stopOnSuspended bool
	requests        atomic.Int64 // open ones, of all locks

	mu      sync.Mutex
	locks   map[string]*lock
	running sync.WaitGroup
	closed  bool
	spawned uint64
}

// limits are those of Config; 0 is none.
type limits struct{ perLock, total, data int }

// admit counts one more open request, unless that is one too many.
func (m *manager) admit() bool {
	if n := m.requests.Add(1); m.limits.total > 0 && n > int64(m.limits.total) {
		m.requests.Add(-1)
		return false
	}
	return true
}

// lock is the actor of a path, started if need be.
func (m *manager) lock(path string, rule func() queue.Rule) (*lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(path, rule)
}

// pin is the same for one who keeps the actor's PID: the actor will not retire.
func (m *manager) pin(path string, rule func() queue.Rule) (*actor.PID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.find(path, rule)
	if err != nil {
		return nil, err
	}
	l.pinned.Store(true)
	return l.self.PID(), nil
}

// find needs m.mu.
func (m *manager) find(path string, rule func() queue.Rule) (*lock, error) {
	if m.closed {
		return nil, &messages.Refused{Reason: messages.Reason_CLOSED, Detail: path}
	}
	if l := m.locks[path]; l != nil {
		return l, nil
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return m.spawn(path, rule)
}

// spawn needs m.mu.
func (m *manager) spawn(path string, rule func() queue.Rule) (*lock, error) {
	l := &lock{manager: m, path: path, bridge: m.bridge,
		requests: map[queue.ID]*request{}, ids: map[key]queue.ID{}}
	var in queue.Incarnation
	rand.Read(in[:])
	l.state = queue.NewState(rule(), in)
	m.spawned++
	self, err := m.system.Spawn(fmt.Sprintf("%s/%d%s", m.name, m.spawned, path), func(self *host.Ref) host.Actor {
		l.self = self
		l.scheduleTick()
		return l
	})
	if err != nil {
		l.ticks.Stop()
		return nil, err
	}
	m.locks[path] = l
	m.running.Add(1)
	m.bridge.SendSubscribe(&messages.Subscribe{}, self)
	return l, nil
}

// suspended tells that contexts of grants are to be at their end for the time being.
func (m *manager) suspended() bool {
	return m.stopOnSuspended && m.zk.Session().State == messages.SessionState_SUSPENDED
}

// retire forgets an idle lock, unless somebody outside knows it.
func (m *manager) retire(l *lock) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.pinned.Load() {
		return false
	}
	m.forget(l)
	return true
}

// stopped is said by a lock's actor at its end.
func (m *manager) stopped(l *lock) {
	m.mu.Lock()
	m.forget(l)
	m.mu.Unlock()
	m.running.Done()
}

func (m *manager) forget(l *lock) {
	if m.locks[l.path] == l {
		delete(m.locks, l.path)
	}
}

// close stops all locks and waits until they have answered everybody.
func (m *manager) close() {
	m.mu.Lock()
	m.closed = true
	for _, l := range m.locks {
		l.self.Stop()
	}
	m.mu.Unlock()
	m.running.Wait()
}

func checkPath(path string) error {
	if path == "/" {
		return invalid(`lock path "/": it must name a directory below the root, as in "/locks/orders"`)
	}
	if err := zkbridge.CheckPath(path); err != nil {
		return invalid("lock " + err.Error())
	}
	return nil
}
