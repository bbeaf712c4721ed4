package manager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Settings is what the actors of one Manager have in common.
type Settings struct {
	// IdleTimeout is how long an actor without use goes on. 0 means 10 s.
	IdleTimeout time.Duration
	// StopOnSuspended has the contexts of grants end when the connection is lost.
	StopOnSuspended bool
	Limits          Limits
	// OmitHolder leaves the data of nodes empty unless a request has data of its own.
	OmitHolder bool
	// RecordStacks has Acquisitions record where they were made.
	RecordStacks bool
	// Monitor hears of the requests; nil for none.
	Monitor Monitor
	// Log hears of misuse and of failures.
	Log *slog.Logger
}

// Monitor is called for each request of an owner that a lock has accepted. ctx is the context of an
// Acquisition; other senders have context.Background. It must not block, and may return nil.
type Monitor func(ctx context.Context, e *Entry, kind, owner string) RequestMonitor

// RequestMonitor hears of one request. One goroutine at a time calls its methods, which must not
// block.
type RequestMonitor interface {
	// Granted is called before the owner hears of its grant.
	Granted(waited time.Duration, token requests.Token)
	// Refused is called at the end of a request that was not granted.
	Refused(waited time.Duration, reason messages.Reason)
	// Ended is called at the end of a grant. A reason of 0 is a release.
	Ended(held time.Duration, reason messages.Reason)
}

const (
	defaultIdleTimeout = 10 * time.Second
	longestTick        = time.Second
	shortestTick       = 10 * time.Millisecond
)

// Manager starts the actors of locks, one for each path that the program uses, and one for each path and
// recipe that clients of its lock server use: see FindServed. Only the manager does.
type Manager struct {
	Settings
	// Session is the session that the locks live on.
	Session AnySession
	// Bridge is the Session as the connection to ZooKeeper, whose blocking calls do not wait for a
	// connection. It is nil for the locks of a lock server: see Remote.
	Bridge zkbridge.Internals
	// Remote is the lock server of a process without ZooKeeper; nil otherwise.
	Remote Remote

	ended        context.Context
	end          context.CancelFunc // ends ended
	draining     context.Context
	beginDrain   context.CancelFunc // ends draining
	quiet        context.Context    // ends when only requests of lost grants are open, after beginDrain
	becomeQuiet  context.CancelFunc // ends quiet
	system       *host.System
	name         string // prefix of the actors' names
	tickInterval time.Duration
	holder       []byte       // the encoded Holder of this process, without an owner; nil for no record
	openRequests atomic.Int64 // of owners, of all locks

	tallies [tallyCount]Tally

	mu         sync.Mutex
	session    *messages.SessionChanged // as the bridge has told it last; nil before
	entries    map[string]*Entry        // by path; an entry of several directories also by theirs
	served     map[string]servedEntries // by path: those of FindServed
	inOrder    []*Entry                 // in the order of their start; up to the next tick also forgotten entries
	ticks      *time.Timer              // until the next tick; nil while there are no entries
	tickDue    []*Entry                 // entries that get the tick under way yet
	atNextTick []func()
	running    sync.WaitGroup // actors whose Stopped has not returned
	closed     bool
	started    uint64
	cleanups   cleanups
	lost       map[lostBy][]messages.Reason // grants that named owners have yet to release
	unreleased int64                        // how many these are; they are open requests
	misused    map[string]map[string]bool   // by way, the paths: see FirstMisuse

	sessionLog sessionLog
}

// instances numbers the managers of this process: several may share a protoactor system.
var instances atomic.Uint64

// New returns a Manager whose actors run in the system, on a *zkbridge.Bridge or on the session of a
// Remote. It does not block.
func New(system *host.System, on Backend, cfg Settings) *Manager {
	m := &Manager{}
	switch on := on.(type) {
	case *zkbridge.Bridge:
		m.Bridge = on.Internals().FailFast(true)
		m.Session = m.Bridge
	case Remote:
		m.Remote, m.Session = on, on
	default:
		panic(fmt.Sprintf("locks live on a *zkbridge.Bridge, not on a %T", on))
	}
	m.Settings, m.system = cfg, system
	m.name = fmt.Sprintf("actorlock%d", instances.Add(1))
	m.sessionLog.last = messages.SessionState_ENDED
	m.served = map[string]servedEntries{}
	m.entries, m.lost, m.misused = map[string]*Entry{}, map[lostBy][]messages.Reason{}, map[string]map[string]bool{}
	m.ended, m.end = context.WithCancel(context.Background())
	m.draining, m.beginDrain = context.WithCancel(context.Background())
	m.quiet, m.becomeQuiet = context.WithCancel(context.Background())
	m.cleanups = cleanups{sessionGoesOn: m.Remote == nil, open: map[*Entry]struct{}{}}
	if !cfg.OmitHolder {
		m.holder = newHolderRecord()
	}
	if m.IdleTimeout <= 0 {
		m.IdleTimeout = defaultIdleTimeout
	}
	m.tickInterval = max(min(m.IdleTimeout, longestTick), shortestTick)
	m.Session.Ref().SendSubscribe(&messages.Subscribe{}, m)
	return m
}

// SessionEndsWithClose says that Close need not wait for the deletion of nodes: they go with the session.
func (m *Manager) SessionEndsWithClose() { m.cleanups.sessionGoesOn = false }

// Ended returns a context that ends with End.
func (m *Manager) Ended() context.Context { return m.ended }

// End ends what goes on beside the locks, such as observers. It is called once the session is closed.
func (m *Manager) End() { m.end() }

// ActorSystem returns the system that the locks' actors run in.
func (m *Manager) ActorSystem() *actor.ActorSystem { return m.system.Actors }

// Suspended reports whether contexts of grants have to be at their end for the time being.
func (m *Manager) Suspended() bool {
	return m.StopOnSuspended && m.Session.Session().State == messages.SessionState_SUSPENDED
}

// Find returns the entry of a path, and starts its actor if there is none.
func (m *Manager) Find(path string, recipe *Recipe) (*Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(path, recipe)
}

// FindPinned is Find for a caller that keeps the PID of the actor: the actor does not retire.
func (m *Manager) FindPinned(path string, recipe *Recipe) (*Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.get(path, recipe)
	if err == nil {
		err = e.Self.Register()
	}
	if err == nil {
		e.users.Add(1)
	}
	return e, err
}

func inUse(path string, as, wanted *Recipe) error {
	return check.Invalid(fmt.Sprintf("lock path %q: it is in use as a %v, and asked for as a %v: give each of them a path of its own", path, as, wanted))
}

// get needs m.mu.
func (m *Manager) get(path string, recipe *Recipe) (*Entry, error) {
	if e := m.entries[path]; e != nil && !m.closed {
		if e.Path != path || !e.Recipe.same(recipe) {
			return nil, inUse(path, e.Recipe, recipe)
		}
		return e, nil
	}
	e, err := m.newEntry(path, recipe)
	if err != nil {
		return nil, err
	}
	for _, directory := range e.Directories {
		if other := m.entries[directory]; other != nil {
			return nil, inUse(directory, other.Recipe, recipe)
		}
	}
	if err := m.addDependencies(e, m.get); err != nil {
		return nil, err
	}
	m.entries[e.Path] = e
	for _, directory := range e.Directories {
		m.entries[directory] = e
	}
	m.start(e)
	return e, nil
}

// newEntry needs m.mu.
func (m *Manager) newEntry(path string, recipe *Recipe) (*Entry, error) {
	if m.closed {
		return nil, &messages.Refused{Reason: messages.Reason_CLOSED, Detail: path}
	}
	if err := check.Path(path); err != nil && recipe.Members == nil {
		return nil, err
	}
	e := &Entry{Manager: m, Path: path, Recipe: recipe}
	for _, d := range recipe.Directories {
		e.Directories = append(e.Directories, path+d.Suffix)
	}
	return e, nil
}

// addDependencies finds the entries that the actor of an entry needs. It needs m.mu.
func (m *Manager) addDependencies(e *Entry, get func(path string, recipe *Recipe) (*Entry, error)) error {
	if m.Remote != nil {
		return nil // the lock server has its own
	}
	for _, member := range e.Recipe.Members {
		dep, err := get(member.Path, member.Recipe)
		if err != nil {
			e.releaseDeps()
			return err
		}
		dep.users.Add(1)
		e.Deps = append(e.Deps, dep)
	}
	return nil
}

// start needs m.mu.
func (m *Manager) start(e *Entry) {
	m.started++
	e.number, e.Tally, e.SessionAtStart = m.started, &m.tallies[m.started%tallyCount], m.session
	m.running.Add(1)
	m.inOrder = append(m.inOrder, e)
	m.system.StartNamed(e, func(self *host.Ref) host.Actor {
		e.Self = self
		if m.Remote != nil { // it asks the lock server
			return m.Remote.NewActor(e)
		}
		return e.Recipe.NewActor(e)
	})
	if m.ticks == nil {
		m.ticks = time.AfterFunc(m.tickInterval, m.tickEntries)
	}
}

// Forget has later requests for the path find a new actor.
func (m *Manager) Forget(e *Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(e)
}

func (m *Manager) forgetLocked(e *Entry) {
	switch {
	case e.forgotten:
		return
	case e.served:
		m.forgetServed(e)
	default:
		delete(m.entries, e.Path)
		for _, directory := range e.Directories {
			delete(m.entries, directory)
		}
	}
	e.forgotten = true
	e.releaseDeps()
}

// Stopped notes that an actor has stopped, and has answered all requests: Close waits for that.
func (m *Manager) Stopped() { m.running.Done() }

// Close stops all actors and blocks until they have answered all requests; if the session goes
// on, also until their nodes are deleted.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	if m.ticks != nil {
		m.ticks.Stop()
	}
	m.Session.Ref().SendUnsubscribe(&messages.Unsubscribe{}, m)
	for _, e := range m.activeEntries() {
		e.Self.Stop()
	}
	m.mu.Unlock()
	m.running.Wait()
	if !m.cleanups.sessionGoesOn {
		return nil
	}
	return m.awaitCleanups()
}

// activeEntries returns the entries in the order of their start. It needs m.mu.
func (m *Manager) activeEntries() []*Entry {
	m.inOrder = slices.DeleteFunc(m.inOrder, func(e *Entry) bool { return e.forgotten })
	return m.inOrder
}

// Closed reports whether Close was called.
func (m *Manager) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// Tell implements ask.Recipient: the manager is a subscriber of the bridge, and passes each state
// of the session on to all actors. The actors need no subscriptions of their own: one that starts
// has the present state from the manager, and misses no change.
func (m *Manager) Tell(msg any) {
	s, ok := msg.(*messages.SessionChanged)
	if !ok {
		return
	}
	m.logSession(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	var change any = StateChange{s}
	for _, e := range m.activeEntries() {
		e.Self.Tell(change)
	}
}

// FirstMisuse reports whether it is called for the first time for a path and a way in which
// programs misuse the path: another recipe uses the path of the lock, too, its clients do not wait
// for each other, the node at the path is a persistent contender, or the process waits for itself.
// It returns false once it has returned true for mostMisused paths: a program may have millions.
func (m *Manager) FirstMisuse(path, way string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	paths := m.misused[way]
	if paths == nil {
		paths = map[string]bool{}
		m.misused[way] = paths
	}
	if paths[path] || len(paths) == mostMisused {
		return false
	}
	paths[path] = true
	return true
}

const mostMisused = 100

// Paths returns the paths of the running actors, and of their directories.
func (m *Manager) Paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Keys(m.entries)), slices.Collect(maps.Keys(m.served)))
}

// System returns the system that the locks' actors run in.
func (m *Manager) System() *host.System { return m.system }
