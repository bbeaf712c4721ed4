package failures

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// userOperation is an operation of users. prepare makes the state before the operation, without a
// fault. The function that it returns does the operation and checks the outcome.
type userOperation struct {
	name    string
	prepare func(s *matrixRun) (run func())
	varies  bool // it does not send all of its requests each time
}

var operations = []userOperation{
	{name: "first acquire", prepare: func(s *matrixRun) func() { return s.acquire }},
	{name: "acquire in a directory of others", prepare: func(s *matrixRun) func() {
		locktest.Unlock(s, locktest.Lock(s, s.rival))
		return s.acquire
	}},
	{name: "acquire in a known directory", prepare: func(s *matrixRun) func() {
		locktest.Unlock(s, locktest.Lock(s, s.mu))
		return s.acquire
	}},
	{name: "acquire in a directory with data", prepare: func(s *matrixRun) func() {
		s.createDirectory("theirs", zk.PermAll)
		return s.acquire
	}},
	{name: "acquire without the right to write", prepare: func(s *matrixRun) func() {
		s.createDirectory("", zk.PermAll&^zk.PermWrite)
		return s.acquire
	}},
	{name: "acquire behind another", prepare: behind((*matrixRun).acquireBehind)},
	{name: "acquire behind another, with data", prepare: func(s *matrixRun) func() {
		s.createDirectory("theirs", zk.PermAll)
		return behind((*matrixRun).acquireBehind)(s)
	}},
	// One transaction, or two, create the three nodes.
	{name: "three of one session behind another", prepare: behind((*matrixRun).acquireThreeBehind), varies: true},
	{name: "try", prepare: func(s *matrixRun) func() { return func() { s.try(nil) } }},
	{name: "try behind another", prepare: behind((*matrixRun).try)},
	{name: "wait for too long", prepare: behind((*matrixRun).timeout)},
	{name: "cancel while waiting", prepare: behind((*matrixRun).cancelWaiting)},
	{name: "cancel while creating", prepare: func(s *matrixRun) func() {
		return func() {
			s.cancelCreating(context.Background(), (*actors.Future[*actors.Grant]).Cancel, actors.ErrCancelled)
		}
	}},
	{name: "context ends while creating", prepare: func(s *matrixRun) func() {
		why := errors.New("this is why")
		ctx, cancel := context.WithCancelCause(context.Background())
		return func() { s.cancelCreating(ctx, func(*actors.Future[*actors.Grant]) { cancel(why) }, why) }
	}},
	{name: "release", prepare: holding(func(s *matrixRun, g *actors.Grant) { s.release(g) })},
	{name: "enter again", prepare: func(s *matrixRun) func() {
		g := s.record(locktest.Lock(s, s.mu, actors.WithOwner("me")))
		return func() { s.reenter(g) }
	}},
	{name: "write, then read, by a local queue", prepare: func(s *matrixRun) func() {
		rw := s.locks.RWMutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Time: time.Second, Linger: time.Second}))
		s.rival = s.others.RWMutex("/lock").Write()
		return func() { s.writeAndRead(rw) }
	}, varies: true},
	{name: "verify", prepare: holding((*matrixRun).verify)},
	{name: "guarded write", prepare: holding((*matrixRun).guardedWrite)},
	{name: "verify token", prepare: behind((*matrixRun).verifyToken)},
	{name: "close", prepare: holding((*matrixRun).close), varies: true},
}

// holding prepares an operation on a grant.
func holding(run func(s *matrixRun, g *actors.Grant)) func(s *matrixRun) func() {
	return func(s *matrixRun) func() {
		g := s.record(locktest.Lock(s, s.mu))
		return func() { run(s, g) }
	}
}

// behind prepares an operation while the rival holds.
func behind(run func(s *matrixRun, theirs *actors.Grant)) func(s *matrixRun) func() {
	return func(s *matrixRun) func() {
		theirs := locktest.Lock(s, s.rival)
		s.greatest = theirs.Token()
		return func() { run(s, theirs) }
	}
}

// createDirectory makes the lock's directory, as another client.
func (s *matrixRun) createDirectory(data string, rights int32) {
	s.Helper()
	_, err := s.others.Multi(locktest.Within(s), &zk.CreateRequest{Path: "/lock", Data: []byte(data), Acl: zk.WorldACL(rights)})
	locktest.Must(s, err)
}

func (s *matrixRun) acquire() { s.hold(s.granted(s.request(context.Background()))) }

// unlockLater releases the rival's grant after the waiters have had time to reach their places.
func (s *matrixRun) unlockLater(theirs *actors.Grant, waiting ...*actors.Future[*actors.Grant]) {
	s.Helper()
	<-time.After(3 * locktest.SessionTimeout)
	locktest.Pending(s, waiting...)
	locktest.Unlock(s, theirs)
}

func (s *matrixRun) acquireBehind(theirs *actors.Grant) {
	f := s.request(context.Background())
	s.unlockLater(theirs, f)
	s.hold(s.granted(f))
}

// acquireThreeBehind has three requests wait, and checks that one is granted at a time. The order
// does not matter: the node of a create that is repeated comes later.
func (s *matrixRun) acquireThreeBehind(theirs *actors.Grant) {
	var fs []*actors.Future[*actors.Grant]
	granted := make(chan *actors.Future[*actors.Grant])
	for range 3 {
		f := s.request(context.Background())
		fs = append(fs, f)
		go func() {
			<-f.Done()
			granted <- f
		}()
	}
	s.unlockLater(theirs, fs...)
	for range fs {
		f := <-granted
		g := s.granted(f)
		fs = slices.DeleteFunc(fs, func(other *actors.Future[*actors.Grant]) bool { return other == f })
		// On a busy machine this goroutine may come so late that the fault has ended one grant, and the next one
		// is made.
		for _, other := range fs {
			if locktest.IsClosed(other.Done()) {
				if h, err := other.Result(); err == nil && h.Err() == nil && g.Err() == nil {
					s.Errorf("%v and %v hold at one time", g, h)
				}
			}
		}
		s.release(g)
	}
}

func (s *matrixRun) try(theirs *actors.Grant) {
	g, err := await(s, s.request(context.Background(), actors.Try()))
	switch {
	case err == nil && theirs == nil:
		s.hold(s.record(g))
	case err == nil:
		s.Errorf("granted with token %v while the rival holds it", g.Token())
	case theirs == nil && s.fault.name == "":
		s.Errorf("the lock is free, but: %v", err)
	case s.fault.name != "" && errors.Is(err, actors.ErrSuspended):
	default: // a node of the own lost session may be ahead
		locktest.Is(s, err, actors.ErrNotAcquired)
	}
	if theirs != nil {
		s.unlockLater(theirs)
	}
}

func (s *matrixRun) timeout(theirs *actors.Grant) {
	const wait = 1500 * time.Millisecond
	begun := time.Now()
	_, err := await(s, s.request(context.Background(), actors.WithTimeout(wait)))
	locktest.Is(s, err, actors.ErrTimedOut)
	if took := time.Since(begun); took != wait {
		s.Errorf("after %v", took)
	}
	s.unlockLater(theirs)
}

func (s *matrixRun) cancelWaiting(theirs *actors.Grant) {
	f := s.request(context.Background())
	<-time.After(locktest.SessionTimeout / 4)
	locktest.Pending(s, f)
	s.expectCancelled(f, f.Cancel, actors.ErrCancelled)
	s.unlockLater(theirs)
}

// expectCancelled ends the request, whose future must be complete at that moment.
func (s *matrixRun) expectCancelled(f *actors.Future[*actors.Grant], cancel func(), why error) {
	s.Helper()
	begun := time.Now()
	cancel()
	_, err := await(s, f)
	locktest.Is(s, err, why)
	if took := time.Since(begun); took != 0 {
		s.Errorf("%v after it was cancelled", took)
	}
}

// cancelCreating cancels a request while its create is under way.
func (s *matrixRun) cancelCreating(ctx context.Context, cancel func(f *actors.Future[*actors.Grant]), why error) {
	for _, op := range []embedded.Op{embedded.OpMulti, embedded.OpCreate} { // a fault that was injected before comes first
		s.Inject(embedded.Fault{Op: op, Session: s.locks.Session().ID, Times: -1,
			Action: embedded.DelayReply, Delay: 50 * time.Millisecond})
	}
	f := s.request(ctx)
	<-time.After(time.Millisecond)
	if s.fault.name != "" && locktest.IsClosed(f.Done()) {
		s.release(s.granted(f)) // the fault came in place of the delay
		return
	}
	s.expectCancelled(f, func() { cancel(f) }, why)
	<-time.After(locktest.SessionTimeout) // for its node to be found and deleted
}

func (s *matrixRun) reenter(g *actors.Grant) {
	wait := s.contend()
	h, err := await(s, s.request(context.Background(), actors.WithOwner("me")))
	locktest.Must(s, err) // a re-entry sends no request
	if h.Token() != g.Token() {
		s.Errorf("token %v of the second, %v of the first", h.Token(), g.Token())
	}
	s.release(h)
	s.release(g)
	locktest.Must(s, wait())
}

// writeAndRead downgrades while the rival waits, and has another owner read.
func (s *matrixRun) writeAndRead(rw *actors.RWMutex) {
	w := s.granted(s.keep(rw.Write().Acquire(context.Background(), actors.WithOwner("me"))))
	wait := s.contend()
	r, err := await(s, s.keep(rw.Read().Acquire(context.Background(), actors.WithOwner("me"))))
	other := s.keep(rw.Read().Acquire(context.Background()))
	if err != nil {
		locktest.Must(s, s.allowed(err))
		s.release(w)
	} else {
		if r.Token() != w.Token() {
			s.Errorf("token %v of the reader, %v of the writer", r.Token(), w.Token())
		}
		s.grantsMu.Lock()
		s.grants = append(s.grants, r)
		s.grantsMu.Unlock()
		s.release(w)
		select {
		case <-r.Done():
		case <-time.After(3 * locktest.SessionTimeout):
		}
		s.release(r)
	}
	g, err := await(s, other)
	locktest.Must(s, err)
	if !s.fault.expires { // else the grant may be of a session whose end the process does not know yet
		s.record(g)
	}
	s.release(g)
	locktest.Must(s, s.allowed(wait()))
}

func (s *matrixRun) verify(g *actors.Grant) {
	wait := s.contend()
	s.verified(g.Verify(context.Background()))
	s.hold(g)
	locktest.Must(s, wait())
}

// verified checks the error of a check of a grant. It reports whether ZooKeeper has shown that the
// grant holds.
func (s *matrixRun) verified(err error) bool {
	s.Helper()
	if err == nil || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		return err == nil
	}
	locktest.Must(s, s.allowed(err))
	return false
}

func (s *matrixRun) guardedWrite(g *actors.Grant) {
	_, err := s.others.Multi(locktest.Within(s), &zk.CreateRequest{Path: "/resource", Acl: zk.WorldACL(zk.PermAll)})
	locktest.Must(s, err)
	wait := s.contend()
	_, err = s.locks.Multi(context.Background(), g.Guard(&zk.SetDataRequest{Path: "/resource", Data: []byte("written"), Version: -1})...)
	done := s.verified(err)
	if written := strings.Contains(s.Dump(), "written"); done && !written || !done && written && !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		s.Errorf("written: %v, and the transaction's error is %v", written, err)
	}
	s.hold(g)
	locktest.Must(s, wait())
}

// verifyToken verifies the token of the rival, which holds all the time.
func (s *matrixRun) verifyToken(theirs *actors.Grant) {
	if err := s.locks.VerifyToken(context.Background(), theirs.Node(), theirs.Token()); err != nil && !errors.Is(err, actors.ErrSuspended) {
		locktest.Is(s, err, actors.ErrSessionLost)
	}
	locktest.Unlock(s, theirs)
}

// close closes Locks with a holder, a waiter and a request for another lock.
func (s *matrixRun) close(g *actors.Grant) {
	wait := s.contend()
	waiting := s.request(context.Background())
	<-time.After(time.Millisecond)
	other := s.keep(s.locks.Mutex("/elsewhere").Acquire(context.Background()))
	<-time.After(time.Millisecond)
	if err := s.locks.Close(); err != nil && !strings.Contains(err.Error(), "no server has confirmed") {
		s.Error(err)
	}
	closed := func(err error) {
		if s.Resumes() || !errors.Is(err, actors.ErrSessionLost) { // which the process may notice before
			locktest.Is(s, err, actors.ErrClosed)
		}
	}
	h, err := await(s, waiting)
	if err == nil && !s.Resumes() { // the holder's session was lost, and the next one was fast
		err = locktest.Failure(s, h.Release())
	}
	closed(err)
	if h, err = await(s, other); err == nil {
		err = locktest.Failure(s, h.Release())
	}
	closed(err)
	closed(locktest.Failure(s, g.Release()))
	locktest.Must(s, wait())
}
