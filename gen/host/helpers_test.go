package host_test

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 3 * time.Minute

// probe is an actor with the behaviour of functions, which a test sets before the first message.
type probe struct {
	receive  func(from ask.Recipient, msg any)
	stopped  chan any // capacity 2, so that a second call of Stopped is seen
	received atomic.Int64
	refused  atomic.Int64
	refuse   func(from ask.Recipient, msg any)
}

func newProbe(receive func(ask.Recipient, any)) *probe {
	return &probe{receive: receive, stopped: make(chan any, 2)}
}

func (p *probe) Receive(from ask.Recipient, msg any) {
	p.received.Add(1)
	if p.receive != nil {
		p.receive(from, msg)
	}
}

func (p *probe) Stopped(failure any) { p.stopped <- failure }

func (p *probe) Refuse(from ask.Recipient, msg any) {
	p.refused.Add(1)
	if p.refuse != nil {
		p.refuse(from, msg)
	}
}

// end waits until the actor has stopped, and returns its failure.
func (p *probe) end(t *testing.T) any {
	t.Helper()
	select {
	case failure := <-p.stopped:
		return failure
	case <-time.After(timeLimit):
		t.Fatal("the actor does not stop")
		return nil
	}
}

// inbox is a recipient that keeps its messages.
type inbox chan any

func (m inbox) Tell(msg any) { m <- msg }

// next waits for the next message.
func (m inbox) next(t *testing.T) any {
	t.Helper()
	select {
	case msg := <-m:
		return msg
	case <-time.After(timeLimit):
		t.Fatal("no message")
		return nil
	}
}

// logs is a log that keeps its lines.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logs) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.lines, ""), text)
}

func newSystem(t *testing.T) *host.System {
	s := host.NewSystem(nil, nil)
	t.Cleanup(s.Close)
	return s
}

func spawn(t *testing.T, s *host.System, name string, p *probe) *host.Ref {
	t.Helper()
	ref, err := s.Spawn(name, func(*host.Ref) host.Actor { return p })
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
