package actors

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Paths are those of the locks whose actors run.
func Paths(l *Locks) (paths []string) {
	l.manager.mu.Lock()
	defer l.manager.mu.Unlock()
	for path := range l.manager.entries {
		paths = append(paths, path)
	}
	return paths
}

// Poison makes the mutex's actor panic.
func Poison(m *Mutex) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	// A bridge's answer without contents is nothing that its handler expects.
	l.self.Tell((*messages.Created)(nil))
}

// found is a handle of any lock.
type found interface{ entry() (*actorEntry, error) }

// PoisonFront makes the actor of a local queue panic.
func PoisonFront(m found) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	l.self.Tell((*messages.Contended)(nil))
}

// PoisonBelow makes the actor panic on which the one of a local queue builds.
func PoisonBelow(m found) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	l.deps[0].self.Tell((*messages.Created)(nil))
}

// PoisonSimple makes the simple mutex's actor panic, or the one below.
func PoisonSimple(m *SimpleMutex, below bool) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	if below {
		l.deps[0].self.Tell((*messages.Transacted)(nil))
		return
	}
	l.self.Tell((*messages.Contended)(nil))
}

// PoisonSemaphore makes the semaphore's actor panic, or the one of its queue or its
// leases.
func PoisonSemaphore(s *Semaphore, part string) {
	p, err := s.entry()
	if err != nil {
		panic(err)
	}
	switch part {
	case "semaphore":
		p.self.Tell((*messages.Granted)(nil))
	case "queue":
		p.deps[0].self.Tell((*messages.Created)(nil))
	case "leases":
		p.deps[1].self.Tell((*messages.Created)(nil))
	}
}

// A grant that came just too late for who had given up is given back, and the log
// does not blame the user.
func TestLateGrant(t *testing.T) {
	s := zktest.Embedded(t)
	var log strings.Builder
	locks, err := Connect(t.Context(), s.Addr(), Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		h := &locks.Mutex(s.Path(t)).handle
		ctx, cancel := context.WithCancel(t.Context())
		asked, p := newAcquisition(h)
		if asked.prepare(ctx, p, nil) {
			asked.watch(ctx)
			asked.send()
		}
		<-p.Done()
		g, err := p.Take()
		if err != nil {
			t.Fatal(err)
		}
		// The actor's answer comes once more, to a claim whose promise is complete.
		c := &acquisition{handle: h, entry: g.acquisition.entry}
		c.Tell(&messages.Granted{Node: "late"})
		g.Release().Result()
		cancel()
	}()
	for range 20 {
		runtime.GC()
		runtime.Gosched()
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("the log says: %s", log.String())
	}
}

// Close comes to an actor below first: who asks the one above meanwhile is told of that,
// not of a failure.
func TestClosedBelowFirst(t *testing.T) {
	s := zktest.Embedded(t)
	for name, handleOf := range map[string]func(*Locks) *handle{
		"multi-lock": func(l *Locks) *handle { return &l.MultiLock(l.Mutex("/a"), l.Mutex("/b")).handle },
		"semaphore":  func(l *Locks) *handle { return &l.Semaphore("/c", 1).handle },
		"lender":     func(l *Locks) *handle { return &l.Mutex("/d", LocalQueue(LocalQueueConfig{})).handle },
	} {
		locks, err := Connect(t.Context(), s.Addr(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := handleOf(locks)
		above, err := h.entry()
		if err != nil {
			t.Fatal(err)
		}
		locks.manager.mu.Lock()
		locks.manager.closed = true
		above.deps[0].self.Stop()
		locks.manager.mu.Unlock()
		if _, err := h.Lock(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	}
}
