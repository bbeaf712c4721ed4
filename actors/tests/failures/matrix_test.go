package failures

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// TestEveryFaultAtEveryRequest does each operation once without a fault, to record which requests
// it sends. Then it does the operation again for each request and each fault. After each fault the
// outcome is one that the operation may have, every request is answered, and a contender of another
// session never holds together with a holder of the tested one, but holds in the end. No node,
// watch or goroutine is left. By habit the test runs a sample of each operation's requests and
// faults.
func TestEveryFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			requests, _ := perform(t, op.prepare, requestFault{})
			if len(requests) == 0 {
				t.Fatal("the operation sends no request")
			}
			sampled, ran := sample.OneIn(t, 12), 0
			for _, f := range requestFaults {
				nth := map[embedded.Op]int{}
				for i, request := range requests {
					nth[request]++
					if !sampled() {
						continue
					}
					if ran++; ran%16 == 0 {
						runtime.GC() // grants keep their bubble for some rounds, between which the heap may double
					}
					f.fault.Op, f.fault.Nth = request, nth[request]
					t.Run(fmt.Sprintf("%s/%d %v", f.name, i+1, request), func(t *testing.T) {
						if _, fired := perform(t, op.prepare, f); !fired && !op.varies {
							t.Error("the request was not sent")
						}
					})
				}
			}
		})
	}
}

// requestFault is a fault at a request of the tested session.
type requestFault struct {
	name  string
	fault embedded.Fault
	// then are further faults, of any connection.
	then []embedded.Fault
	// expires: the server ends the session, so that its nodes go before its client knows.
	expires bool
	// stale: all sessions read an old state for a while.
	stale bool
}

var requestFaults = []requestFault{
	{name: "cut before", fault: embedded.Fault{Action: embedded.CutBefore}},
	{name: "drop reply", fault: embedded.Fault{Action: embedded.DropReply}},
	{name: "cut after", fault: embedded.Fault{Action: embedded.CutAfter}},
	{name: "late request", fault: embedded.Fault{Action: embedded.DelayRequest, Delay: time.Second}},
	{name: "late reply", fault: embedded.Fault{Action: embedded.DelayReply, Delay: time.Second}},
	{name: "request later than the session", fault: embedded.Fault{Action: embedded.DelayRequest, Delay: 2 * locktest.SessionTimeout}},
	{name: "reply later than the session", fault: embedded.Fault{Action: embedded.DelayReply, Delay: 2 * locktest.SessionTimeout}},
	{name: "black hole", fault: embedded.Fault{Action: embedded.BlackHole}},
	{name: "black hole after", fault: embedded.Fault{Action: embedded.BlackHoleAfter}},
	{name: "expire", fault: embedded.Fault{Action: embedded.ExpireSession}, expires: true},
	{name: "drop three replies", fault: embedded.Fault{Action: embedded.DropReply, Times: 3}},
	{name: "drop reply, then cut in the handshake", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpConnect, Action: embedded.CutBefore}, {Op: embedded.OpConnect, Action: embedded.DropReply}}},
	{name: "drop reply, then no answer to the handshake", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpConnect, Action: embedded.BlackHoleAfter}}},
	{name: "drop reply, then away beyond the session", fault: embedded.Fault{Action: embedded.DropReply},
		then: []embedded.Fault{{Op: embedded.OpDial, Action: embedded.CutBefore, Times: 40}}},
	{name: "stale", fault: embedded.Fault{Action: embedded.DelayReply}, stale: true},
	{name: "stale and drop reply", fault: embedded.Fault{Action: embedded.DropReply}, stale: true},
	{name: "stale and expire", fault: embedded.Fault{Action: embedded.ExpireSession}, expires: true, stale: true},
}

// matrixRun is one operation with one fault. The tested session has the fault, and the session of a
// rival for the lock has none.
type matrixRun struct {
	*locktest.Virtual
	locks, others *actors.Locks
	mu            *actors.Mutex
	rival         locktest.Handle
	fault         requestFault

	grantsMu sync.Mutex
	grants   []*actors.Grant // of the tested session
	greatest actors.Token    // of both sessions
	requests []*actors.Future[*actors.Grant]
}

// failedRuns keeps the runs of failed tests, which leave grants behind. The garbage collector would
// release these grants from outside of the bubble, which ends the whole test binary.
var failedRuns sync.Map

// request requests the lock in the tested session.
func (s *matrixRun) request(ctx context.Context, options ...actors.Option) *actors.Future[*actors.Grant] {
	return s.keep(s.mu.Acquire(ctx, options...))
}

// keep keeps the future until the end of the run: the garbage collector must not end its request.
func (s *matrixRun) keep(f *actors.Future[*actors.Grant]) *actors.Future[*actors.Grant] {
	s.requests = append(s.requests, f)
	return f
}

// perform does the operation, with the fault if it has a name. It returns the operation's requests,
// and whether the fault has fired.
func perform(t *testing.T, prepare func(s *matrixRun) func(), f requestFault) (requests []embedded.Op, fired bool) {
	t.Helper()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		s := &matrixRun{Virtual: v, fault: f}
		defer func() {
			if v.Failed() {
				failedRuns.Store(s, nil)
			}
		}()
		tested := v.Process()
		s.locks = tested.Locks
		s.mu = s.locks.Mutex(v.LockPath)
		s.others = v.Locks()
		s.rival = s.others.Mutex(v.LockPath)
		if !v.Resumes() {
			<-time.After(locktest.SessionTimeout) // it closes the session in which it has learned what the server does not know
		}
		run := prepare(s)
		injected := &embedded.Injected{}
		if f.name != "" {
			f.fault.Session = s.locks.Session().ID
			injected = v.Inject(f.fault)
			defer injected.Remove()
		}
		for _, other := range f.then {
			defer v.Inject(other).Remove()
		}
		if f.stale {
			v.Freeze(0)
			defer time.AfterFunc(locktest.SessionTimeout/2, func() { v.Thaw(0) }).Stop()
		}
		requests = tested.Record(run)
		fired = len(injected.Firings()) > 0
		// However the operation ended, the lock is free for others.
		locktest.Must(v, s.allowed(s.contend()()))
		v.Clean()
	})
	return requests, fired
}

// record records a grant of the tested session.
func (s *matrixRun) record(g *actors.Grant) *actors.Grant {
	s.Helper()
	s.grantsMu.Lock()
	defer s.grantsMu.Unlock()
	s.grants = append(s.grants, g)
	s.checkToken(g)
	return g
}

// checkToken checks that the token is the greatest so far. The caller has locked grantsMu.
func (s *matrixRun) checkToken(g *actors.Grant) {
	s.Helper()
	if token := g.Token(); token.Compare(s.greatest) <= 0 {
		s.Errorf("token %v after %v", token, s.greatest)
	} else {
		s.greatest = token
	}
}

// contend has the rival acquire the lock, which checks that all grants of the tested session have
// ended, and release it at once. The returned function waits for the release.
func (s *matrixRun) contend() func() error {
	s.Helper()
	f, done := s.keep(s.rival.Acquire(context.Background())), make(chan error, 1)
	go func() {
		g, err := f.Result()
		if err == nil {
			s.grantsMu.Lock()
			for _, here := range s.grants {
				if here.Err() == nil && !s.fault.expires {
					s.Errorf("the rival holds with token %v, beside %v", g.Token(), here.Token())
				}
			}
			s.checkToken(g)
			s.grantsMu.Unlock()
			err = g.Unlock(context.Background())
		}
		done <- err
	}()
	return func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Hour):
			s.Fatalf("the rival is never granted the lock; nodes %v", s.LockNodes())
			return nil
		}
	}
}

// await waits until a future is complete.
func await[T any](s *matrixRun, f *actors.Future[T]) (T, error) {
	s.Helper()
	select {
	case <-f.Done():
	case <-time.After(time.Hour):
		s.Fatalf("a future is never complete; nodes %v", s.LockNodes())
	}
	return f.Result()
}

// granted waits for a grant, which comes in spite of the fault.
func (s *matrixRun) granted(f *actors.Future[*actors.Grant]) *actors.Grant {
	s.Helper()
	g, err := await(s, f)
	locktest.Must(s, err)
	return s.record(g)
}

// hold has the rival contend, holds for longer than a session lasts without an answer, and
// releases.
func (s *matrixRun) hold(g *actors.Grant) {
	s.Helper()
	wait := s.contend()
	select {
	case <-g.Done():
	case <-time.After(3 * locktest.SessionTimeout):
	}
	s.release(g)
	locktest.Must(s, s.allowed(wait()))
}

// release releases the grant, which may be lost.
func (s *matrixRun) release(g *actors.Grant) {
	s.Helper()
	_, err := await(s, g.Release())
	locktest.Must(s, s.allowed(err))
}

// allowed returns nil for an error that a release or a check of a grant may have, and other errors
// as they are.
func (s *matrixRun) allowed(err error) error {
	switch {
	case errors.Is(err, actors.ErrSessionLost):
		return nil
	case s.fault.expires && errors.Is(err, actors.ErrNodeDeleted): // the client notices the end of the node before that of the session
		return nil
	}
	return err
}
