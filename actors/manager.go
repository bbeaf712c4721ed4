package actors

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// manager starts the actors of locks: one for each path. It is the only place that does.
type manager struct {
	system       *host.System
	zk           guardedBridge
	bridge       messages.BridgeRef // of zk
	log          *slog.Logger
	idleTimeout  time.Duration // how long an unused lock keeps its actor
	tickInterval time.Duration // how often a lock looks at what lasts
	name         string        // prefix of the actors' names

	limits          limits
	stopOnSuspended bool
	requests        atomic.Int64 // open ones, of all locks

	misused sync.Map // paths that another recipe was seen to use

	mu        sync.Mutex
	entries   map[string]*actorEntry // by key
	inOrder   []*actorEntry          // in the order of their start; up to the next beat also forgotten ones
	tickTimer *time.Timer            // until the next beat; nil while there are no residents
	tickDue   []*actorEntry          // to be told in this beat yet
	running   sync.WaitGroup         // actors that have not answered everybody at their end
	closed    bool
	started   uint64

	draining drainingActors
}

// limits are those of Config; 0 is none.
type limits struct{ perLock, total, data int }

// countRequest counts one more open request, unless that is one too many.
func (m *manager) countRequest() bool {
	if n := m.requests.Add(1); m.limits.total > 0 && n > int64(m.limits.total) {
		m.requests.Add(-1)
		return false
	}
	return true
}

// find is the actor of a path, started if need be.
func (m *manager) find(path string, recipe *recipe) (*actorEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(path, path, recipe)
}

// findPinned is find for one who keeps the actor's address: the actor does not retire.
func (m *manager) findPinned(path string, recipe *recipe) (*actorEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.get(path, path, recipe)
	if err == nil {
		err = r.self.Register()
	}
	if err == nil {
		r.users.Add(1)
	}
	return r, err
}

// get needs m.mu.
func (m *manager) get(key, path string, recipe *recipe) (*actorEntry, error) {
	if m.closed {
		return nil, &messages.Refused{Reason: messages.Reason_CLOSED, Detail: path}
	}
	if r := m.entries[key]; r != nil {
		if !r.recipe.same(recipe) {
			return nil, invalid(fmt.Sprintf("lock path %q: it is in use as a %v, and asked for as a %v", path, r.recipe, recipe))
		}
		return r, nil
	}
	if err := checkPath(path); err != nil && recipe.memberKinds == nil {
		return nil, err
	}
	r := &actorEntry{manager: m, key: key, path: path, recipe: recipe}
	for _, l := range recipe.deps {
		below, at := l.keyAndPath(key, path)
		upon, err := m.get(below, at, l.recipe)
		if err != nil {
			r.releaseDeps()
			return nil, err
		}
		upon.users.Add(1)
		r.deps = append(r.deps, upon)
	}
	m.start(r)
	return r, nil
}

// start needs m.mu.
func (m *manager) start(r *actorEntry) {
	m.started++
	m.running.Add(1)
	m.entries[r.key] = r
	m.inOrder = append(m.inOrder, r)
	m.system.Start(fmt.Sprintf("%s/%d%s", m.name, m.started, r.path), func(self *host.Ref) host.Actor {
		r.self = self
		return r.recipe.newActor(r)
	})
	if m.tickTimer == nil {
		m.tickTimer = time.AfterFunc(m.tickInterval, m.tickEntries)
	}
}

// suspended tells that contexts of grants are to be at their end for the time being.
func (m *manager) suspended() bool {
	return m.stopOnSuspended && m.zk.Session().State == messages.SessionState_SUSPENDED
}

// retire forgets an idle actor, unless somebody counts on it.
func (m *manager) retire(r *actorEntry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.users.Load() > 0 {
		return false
	}
	m.forget(r)
	return true
}

// remove forgets an actor that is of no use any more: whoever asks next gets another.
func (m *manager) remove(r *actorEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(r)
}

func (m *manager) forget(r *actorEntry) {
	if m.entries[r.key] == r {
		delete(m.entries, r.key)
		r.forgotten = true
		r.releaseDeps()
	}
}

// close stops all actors and waits until they have answered everybody; if the session goes
// on, also until their nodes are gone.
func (m *manager) close() error {
	m.mu.Lock()
	m.closed = true
	stopTimer(m.tickTimer)
	m.bridge.SendUnsubscribe(&messages.Unsubscribe{}, m)
	for _, r := range m.activeEntries() {
		r.self.Stop()
	}
	m.mu.Unlock()
	m.running.Wait()
	if !m.draining.sessionGoesOn {
		return nil
	}
	return m.awaitDrained()
}

// activeEntries are the residents, in the order of their start. It needs m.mu.
func (m *manager) activeEntries() []*actorEntry {
	m.inOrder = slices.DeleteFunc(m.inOrder, func(r *actorEntry) bool { return r.forgotten })
	return m.inOrder
}

// split is where a node is, and its name. What is no path has no name of a contender.
func split(path string) (directory, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, min(1, len(path)))], path[i+1:]
}

func (m *manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func checkPath(path string) error {
	if path == "/" {
		return invalid(`lock path "/": it must name a directory below the root, as in "/locks/orders"`)
	}
	if err := zkbridge.CheckPath(path); err != nil {
		return invalid("lock " + err.Error())
	}
	return checkReserved("lock", path)
}

// checkReserved refuses the directory where the library keeps its own nodes.
func checkReserved(what, path string) error {
	own := zkbridge.GenerationDirectory
	if path != own && !strings.HasPrefix(path, own+"/") {
		return nil
	}
	return invalid(fmt.Sprintf("%s path %q: it must be outside %s, where the library keeps the generation of tokens and a node of each session",
		what, path, own))
}
