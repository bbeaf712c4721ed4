package remote_test

import (
	"context"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// acquirable is a lock of any recipe.
type acquirable interface {
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
}

// queued is a lock with a queue of its own.
type queued interface {
	acquirable
	Participants(context.Context) ([]actors.Participant, error)
}

// mineCase is a lock and, if with is set, a multi-lock with it as a member.
type mineCase struct {
	lock func(l *actors.Locks, path string) queued
	with func(l *actors.Locks, member queued, path string) acquirable
}

func multiLock(l *actors.Locks, member queued, path string) acquirable {
	if s, is := member.(*actors.Semaphore); is {
		return l.MultiLock(s, l.Mutex(path+"-other"))
	}
	return l.MultiLock(member.(*actors.Mutex), l.Mutex(path+"-other"))
}

var mineCases = map[string]mineCase{
	"mutex":                     {lock: func(l *actors.Locks, path string) queued { return l.Mutex(path) }},
	"read-write":                {lock: func(l *actors.Locks, path string) queued { return l.RWMutex(path).Write() }},
	"semaphore":                 {lock: func(l *actors.Locks, path string) queued { return l.Semaphore(path, 1) }},
	"multi-lock":                {func(l *actors.Locks, path string) queued { return l.Mutex(path) }, multiLock},
	"multi-lock of a semaphore": {func(l *actors.Locks, path string) queued { return l.Semaphore(path, 1) }, multiLock},
}

// The participants that hold or wait by a node which was made for a client are the client's own, and
// no other client's.
func TestLocalParticipants(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		s := serve(t, zk.Addr(), remote.ServerConfig{})
		clients := []*actors.Locks{dial(t, s.addr), dial(t, s.addr), dial(t, s.addr)}
		for name, c := range mineCases {
			t.Run(name, func(t *testing.T) { c.queueInTurn(t, clients, zk.Path(t)) })
		}
	})
}

// queueInTurn has the clients queue in turn, and hold in this order. A semaphore then also has
// requests without a lease.
func (c mineCase) queueInTurn(t *testing.T, clients []*actors.Locks, path string) {
	var waiting []*actors.Future[*actors.Grant]
	for i := range 4 * len(clients) {
		l := clients[i%len(clients)]
		lock := acquirable(c.lock(l, path))
		if c.with != nil {
			lock = c.with(l, c.lock(l, path), path)
		}
		waiting = append(waiting, lock.Acquire(t.Context()))
		zktest.Eventually(t, zktest.TimeLimit, func() bool {
			all, inspected := c.participants(t, l, path)
			return len(all) == i+1 || c.with == nil && len(inspected) == i+1
		}, "request %d has a node", i)
	}
	for i, f := range waiting {
		g, err := f.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for n, l := range clients {
			all, inspected := c.participants(t, l, path)
			if c.with != nil {
				inspected = inspected[:len(all)] // without the places in request queues that leases follow on
			}
			for _, queue := range [][]actors.Participant{all, inspected} {
				for at, p := range queue {
					if want := (i+at)%len(clients) == n; p.Local != want {
						t.Errorf("with %d of %d granted, client %d: local is %v: %v", i+1, len(waiting), n, p.Local, p)
					}
				}
			}
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// participants returns those that the lock's handle and Inspect report.
func (c mineCase) participants(t *testing.T, l *actors.Locks, path string) (all, inspected []actors.Participant) {
	t.Helper()
	all, err := c.lock(l, path).Participants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := l.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return all, q.Participants
}
