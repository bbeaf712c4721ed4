package actors

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Paths are those of the locks whose actors run.
func Paths(l *Locks) []string { return l.manager.Paths() }

// Poison makes the mutex's actor panic.
func Poison(m *Mutex) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	// A bridge's answer without contents is nothing that its handler expects.
	l.Self.Tell((*messages.Created)(nil))
}

// found is a handle of any lock.
type found interface{ entry() (*shell.Entry, error) }

// PoisonFront makes the actor of a local queue panic.
func PoisonFront(m found) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	l.Self.Tell((*messages.Contended)(nil))
}

// PoisonBelow makes the actor panic on which the one of a local queue builds.
func PoisonBelow(m found) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	l.Deps[0].Self.Tell((*messages.Created)(nil))
}

// PoisonSimple makes the simple mutex's actor panic, or the one below.
func PoisonSimple(m *SimpleMutex, below bool) {
	l, err := m.entry()
	if err != nil {
		panic(err)
	}
	if below {
		l.Deps[0].Self.Tell((*messages.Transacted)(nil))
		return
	}
	l.Self.Tell((*messages.Contended)(nil))
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
		p.Self.Tell((*messages.Granted)(nil))
	case "queue":
		p.Deps[0].Self.Tell((*messages.Created)(nil))
	case "leases":
		p.Deps[1].Self.Tell((*messages.Created)(nil))
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
		// The actor's answer comes once more, to an acquisition whose promise is complete.
		c := &acquisition{handle: h, entry: g.acquisition.entry, msg: g.acquisition.msg}
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
