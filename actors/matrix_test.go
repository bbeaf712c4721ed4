package actors_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// TestEveryFaultAtEveryRequest does each operation once without a fault, to see which requests it
// sends. Then it does the operation again for each request and each mishap. After each mishap the
// outcome is one that the operation may have, every request is answered, and a rival in another session
// never holds the lock together with a holder here, but holds in the end. No node, watch or goroutine
// is left. By habit the test runs a sample of each operation's requests and mishaps.
func TestEveryFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			requests, _ := perform(t, op.prepare, mishap{})
			if len(requests) == 0 {
				t.Fatal("there is nothing to go wrong")
			}
			sampled, ran := sample.OneIn(t, 12), 0
			for _, m := range mishaps {
				nth := map[embedded.Op]int{}
				for i, request := range requests {
					nth[request]++
					if !sampled() {
						continue
					}
					if ran++; ran%16 == 0 {
						runtime.GC() // grants keep their bubble for some rounds, between which the heap may double
					}
					m.fault.Op, m.fault.Nth = request, nth[request]
					t.Run(fmt.Sprintf("%s/%d %v", m.name, i+1, request), func(t *testing.T) {
						if _, came := perform(t, op.prepare, m); !came && !op.varies {
							t.Error("the request did not come")
						}
					})
				}
			}
		})
	}
}

// mishap is what happens at a request of the session under test.
type mishap struct {
	name  string
	fault embedded.Fault
	// then has further faults, for any connection.
	then []embedded.Fault
	// sudden: the session ends on the server without its client's having been silent.
	sudden bool
	// stale: all sessions read an old state, for a while.
	stale bool
}

var mishaps = []mishap{
	{name: "cut before", fault: embedded.Fault{Action: embedded.CutBefore}},
	{name: "drop reply", fault: embedded.Fault{Action: embedded.DropReply}},
	{name: "cut after", fault: embedded.Fault{Action: embedded.CutAfter}},
	{name: "late request", fault: embedded.Fault{Action: embedded.DelayRequest, Delay: time.Second}},
	{name: "late reply", fault: embedded.Fault{Action: embedded.DelayReply, Delay: time.Second}},
	{name: "request later than the session", fault: embedded.Fault{Action: embedded.DelayRequest, Delay: 2 * session}},
	{name: "reply later than the session", fault: embedded.Fault{Action: embedded.DelayReply, Delay: 2 * session}},
	{name: "black hole", fault: embedded.Fault{Action: embedded.BlackHole}},
	{name: "black hole after", fault: embedded.Fault{Action: embedded.BlackHoleAfter}},
	{name: "expire", fault: embedded.Fault{Action: embedded.ExpireSession}, sudden: true},
	{name: "drop three replies", fault: embedded.Fault{Action: embedded.DropReply, Times: 3}},
	{name: "drop reply, then cut in the handshake", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpConnect, Action: embedded.CutBefore}, {Op: embedded.OpConnect, Action: embedded.DropReply}}},
	{name: "drop reply, then no answer to the handshake", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpConnect, Action: embedded.BlackHoleAfter}}},
	{name: "drop reply, then away beyond the session", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpDial, Action: embedded.CutBefore, Times: 40}}},
	{name: "stale", fault: embedded.Fault{Action: embedded.DelayReply}, stale: true},
	{name: "stale and drop reply", fault: embedded.Fault{Action: embedded.DropReply}, stale: true},
	{name: "stale and expire", fault: embedded.Fault{Action: embedded.ExpireSession}, sudden: true, stale: true},
}

// matrixRun is where an operation is performed: a session to which a mishap comes, and a
// rival's, to which none does.
type matrixRun struct {
	*virtual
	locks, others *actors.Locks
	mu            *actors.Mutex
	rival         handle
	mishap        mishap

	inside sync.Mutex
	grants []*actors.Grant // that there were so far, the rival's left out
	newest actors.Token
	asked  []*actors.Future[*actors.Grant]
}

// failures are matrixRuns of tests that failed, which leave grants behind. To be collected
// as garbage, and so given back, from outside of the bubble, would end the whole run.
var failures sync.Map

// request asks for the lock in the session under test.
func (s *matrixRun) request(ctx context.Context, options ...actors.Option) *actors.Future[*actors.Grant] {
	return s.keep(s.mu.Acquire(ctx, options...))
}

func (s *matrixRun) keep(f *actors.Future[*actors.Grant]) *actors.Future[*actors.Grant] {
	s.asked = append(s.asked, f)
	return f
}

// perform does the operation, with the mishap if it has a name. It returns its requests, and whether
// the mishap came.
func perform(t *testing.T, prepare func(s *matrixRun) func(), m mishap) (requests []embedded.Op, came bool) {
	t.Helper()
	bubble(t, func(v *virtual) {
		s := &matrixRun{virtual: v, mishap: m}
		defer func() {
			if v.Failed() {
				failures.Store(s, nil)
			}
		}()
		tested := v.process()
		s.locks = tested.locks
		s.mu = s.locks.Mutex(v.path)
		s.others = v.locks()
		s.rival = s.others.Mutex(v.path)
		run := prepare(s)
		injected := &embedded.Injected{}
		if m.name != "" {
			m.fault.Session = s.locks.Session().ID
			injected = v.Inject(m.fault)
			defer injected.Remove()
		}
		for _, other := range m.then {
			defer v.Inject(other).Remove()
		}
		if m.stale {
			v.Freeze(0)
			defer time.AfterFunc(session/2, func() { v.Thaw(0) }).Stop()
		}
		requests = tested.record(run)
		came = len(injected.Firings()) > 0
		// However it ended, the lock is free for others.
		must(v, s.allowed(s.contend()()))
		v.clean()
	})
	return requests, came
}

// entered notes a grant of the session under test.
func (s *matrixRun) entered(g *actors.Grant) *actors.Grant {
	s.Helper()
	s.inside.Lock()
	defer s.inside.Unlock()
	s.grants = append(s.grants, g)
	s.newer(g)
	return g
}

// newer needs s.inside.
func (s *matrixRun) newer(g *actors.Grant) {
	s.Helper()
	if token := g.Token(); token.Compare(s.newest) <= 0 {
		s.Errorf("token %v after %v", token, s.newest)
	} else {
		s.newest = token
	}
}

// contend lets the rival ask for the lock. The rival may hold only after all grants here have ended in
// the eyes of their holders. It releases the lock at once. The function that contend returns waits for
// that.
func (s *matrixRun) contend() func() error {
	s.Helper()
	f, done := s.keep(s.rival.Acquire(context.Background())), make(chan error, 1)
	go func() {
		g, err := f.Result()
		if err == nil {
			s.inside.Lock()
			for _, here := range s.grants {
				if here.Err() == nil && !s.mishap.sudden {
					s.Errorf("the rival is in with token %v, beside %v", g.Token(), here.Token())
				}
			}
			s.newer(g)
			s.inside.Unlock()
			err = g.Unlock(context.Background())
		}
		done <- err
	}()
	return func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Hour):
			s.Fatalf("the rival never gets the lock; nodes %v", s.nodes())
			return nil
		}
	}
}

// ended waits for a future that must be answered.
func ended[T any](s *matrixRun, f *actors.Future[T]) (T, error) {
	s.Helper()
	select {
	case <-f.Done():
	case <-time.After(time.Hour):
		s.Fatalf("a future is never answered; nodes %v", s.nodes())
	}
	return f.Result()
}

// granted waits for a grant that must come, whatever happens.
func (s *matrixRun) granted(f *actors.Future[*actors.Grant]) *actors.Grant {
	s.Helper()
	g, err := ended(s, f)
	must(s, err)
	return s.entered(g)
}

// hold keeps the grant against the rival for longer than a session can be silent, and releases it.
func (s *matrixRun) hold(g *actors.Grant) {
	s.Helper()
	wait := s.contend()
	select {
	case <-g.Done():
	case <-time.After(3 * session):
	}
	s.release(g)
	must(s, s.allowed(wait()))
}

// release releases the grant, which may be lost.
func (s *matrixRun) release(g *actors.Grant) {
	s.Helper()
	_, err := ended(s, g.Release())
	must(s, s.allowed(err))
}

// allowed passes on what may not be the end of a release or a check of a grant.
func (s *matrixRun) allowed(err error) error {
	switch {
	case errors.Is(err, actors.ErrSessionLost):
		return nil
	case s.mishap.sudden && errors.Is(err, actors.ErrNodeDeleted): // the node's end is seen before the session's
		return nil
	}
	return err
}
