package api

import (
	"cmp"
	"context"
	"sync"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// lockServer is a lock server in this process, without a stream: the locks of a client ask the Locks
// of the server.
type lockServer struct {
	locks *actors.Locks
	*locktest.Network
	mine func(from ask.Recipient) bool // whether a request is the client's

	mu     sync.Mutex
	asked  map[string]int // how many questions came, by kind
	open   int            // questions that are not answered yet
	silent chan error     // not nil: questions end with an error from it, or with their context
}

// client returns Locks of a lock server. Their session is that of a process of its own, which the
// test cuts off and expires.
func (s *lockServer) client(b *locktest.Fixture, session locktest.Process, configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	system := host.NewSystem(nil, nil)
	cfg := actors.Config{}
	for _, f := range configure {
		f(&cfg)
	}
	locks := actors.New(system, remoteSession{access.Manager(session.Locks).Session, s}, cfg)
	b.T.Cleanup(func() { locks.Close() })
	return locks
}

func newLockServer(b *locktest.Fixture) *lockServer {
	p := b.Process()
	return &lockServer{locks: p.Locks, Network: p.Network, asked: map[string]int{}}
}

func (s *lockServer) owns(from ask.Recipient) bool { return s.mine != nil && s.mine(from) }

// remoteSession is a session with a lock server.
type remoteSession struct {
	manager.AnySession
	*lockServer
}

// Close implements manager.Remote.
func (remoteSession) Close() error { return nil }

// count returns how many questions of a kind came.
func (s *lockServer) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[kind]
}

// Ask implements manager.Remote.
func (s *lockServer) Ask(ctx context.Context, q *messages.Question, next func(value []byte) (more bool)) error {
	s.mu.Lock()
	s.asked[q.Kind]++
	s.open++
	silent := s.silent
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	if silent == nil {
		err := inspection.Answer(ctx, access.Manager(s.locks), q, &inspection.Asker{Owns: s.owns, MayInspect: func(string) error { return nil }}, func(value []byte) bool { return ctx.Err() == nil && next(value) })
		return cmp.Or(err, ctx.Err())
	}
	select {
	case err := <-silent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beSilent has questions that come from now on unanswered, if it is true.
func (s *lockServer) beSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = nil
	if silent {
		s.silent = make(chan error)
	}
}

// unanswered returns how many questions are not answered yet.
func (s *lockServer) unanswered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// NewActor implements manager.Remote.
func (s *lockServer) NewActor(e *manager.Entry) host.Actor { return &forwarder{e, s} }

// forwarder passes the messages of owners on to the server's lock, which answers them.
type forwarder struct {
	entry  *manager.Entry
	server *lockServer
}

// Receive implements host.Actor.
func (f *forwarder) Receive(from ask.Recipient, msg any) {
	switch msg.(type) {
	case manager.Tick:
		f.entry.Manager.RetireIfQuiet(f.entry, false)
		return
	case manager.StateChange, manager.RefuseWaiting:
		return
	}
	spec, err := recipes.SpecOf(f.entry.Recipe)
	if err != nil {
		panic(err)
	}
	r, err := recipes.FromSpec(spec)
	if err != nil {
		panic(err)
	}
	to, err := access.Manager(f.server.locks).Find(f.entry.Path, r)
	if err != nil {
		panic(err)
	}
	ask.Send(to.Self, msg, from)
}

// Stopped implements host.Actor.
func (f *forwarder) Stopped(any) { f.entry.Manager.Stopped() }

// Refuse implements host.Actor.
func (f *forwarder) Refuse(from ask.Recipient, msg any) {}
