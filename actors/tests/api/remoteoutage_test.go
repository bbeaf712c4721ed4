package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// remoteInBubble runs f in virtual time with the locks of a lock server, whose session is that of
// the process.
func remoteInBubble(t *testing.T, f func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, p locktest.Process), configure ...func(*actors.Config)) {
	t.Helper()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		s, p := newLockServer(v.Fixture), v.Process()
		f(v, s, s.client(v.Fixture, p, configure...), p)
	})
}

// async returns the error of a call that goes on.
func async(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	synctest.Wait()
	return result
}

// A question that changes nothing ends as soon as the connection is lost, like a call in a process
// with ZooKeeper. What may have changed something is not known only once the session is lost.
func TestQuestionsInAnOutage(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, p locktest.Process) {
		inspect := func() error { return locktest.ErrOf(remote.Inspect(locktest.Within(v), v.LockPath)) }
		set := func() error { return remote.SharedCount("/count", 1).Set(locktest.Within(v), 2) }
		s.beSilent(true)
		reading, writing := async(inspect), async(set)
		p.Disconnect()
		synctest.Wait()
		err := <-reading
		locktest.Is(v, err, actors.ErrSuspended)
		locktest.ExpectParts(v, err.Error(), "inspect "+v.LockPath, "since")
		before := s.count("inspect") + s.count("set-count")
		locktest.Is(v, inspect(), actors.ErrSuspended)
		locktest.Is(v, set(), actors.ErrSuspended)
		locktest.Is(v, remote.Health(locktest.Within(v)), actors.ErrSuspended)
		if s.count("inspect")+s.count("set-count") != before {
			v.Error("a question was sent without a connection")
		}
		<-time.After(2 * locktest.SessionTimeout)
		locktest.Is(v, inspect(), actors.ErrSessionLost)
		select {
		case err := <-writing:
			v.Errorf("the count is set: %v", err)
		default:
		}
		s.silent <- messages.Reason_SESSION_LOST
		locktest.Is(v, <-writing, messages.Reason_OUTCOME_UNKNOWN)
		s.beSilent(false)
		p.Refuse(false)
		locktest.WaitState(v, remote, messages.SessionState_CONNECTED)
		locktest.Must(v, inspect())
		locktest.Must(v, set())
	})
}

// A question is withdrawn when the caller's context ends. The node that was to be deleted after the
// grace stays.
func TestWithdrawnQuestions(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, _ locktest.Process) {
		g := locktest.Lock(v, remote.Mutex(v.LockPath))
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		revoking := async(func() error { return locktest.ErrOf(remote.Revoke(ctx, g.Node(), time.Minute)) })
		queues := remote.Observe(ctx, v.LockPath)
		<-queues
		cancel(why)
		locktest.Is(v, <-revoking, why)
		for range queues {
		}
		synctest.Wait()
		if n := s.unanswered(); n > 0 {
			v.Errorf("%d questions go on", n)
		}
		<-time.After(2 * time.Minute)
		locktest.Must(v, g.Verify(locktest.Within(v)))
		//lint:ignore SA1012 that is the test
		if err := remote.Health(nil); !errors.Is(err, actors.ErrInvalid) {
			v.Error(err)
		}
		revoking = async(func() error {
			return locktest.ErrOf(remote.Revoke(locktest.Within(v), g.Node(), time.Minute))
		})
		locktest.Unlock(v, g)
		locktest.Must(v, <-revoking)
	})
}

// The end of the server's Locks ends the questions of its clients, also if the bridge goes on.
func TestQuestionsEndWithTheServersLocks(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, _ locktest.Process) {
		s.locks, _ = v.OnBridge()
		theirs := locktest.Lock(v, v.Mutex())
		revoking := async(func() error {
			return locktest.ErrOf(remote.Revoke(context.Background(), theirs.Node(), time.Hour))
		})
		s.locks.Close()
		locktest.Is(v, <-revoking, actors.ErrClosed)
		locktest.Unlock(v, theirs)
	})
}

// An observer outlives outages of the connection and the end of the lease, and says so.
func TestObserverOfALockServer(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, p locktest.Process) {
		g := locktest.Lock(v, remote.Mutex(v.LockPath))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		queues := remote.Observe(ctx, v.LockPath)
		expect := func(participants int, why error) {
			v.Helper()
			q, open := locktest.Receive(v, queues, "the queue")
			if !open || q.Path != v.LockPath || len(q.Participants) != participants || (why == nil) != (q.Err == nil) || !errors.Is(q.Err, why) {
				v.Fatalf("%v, %v: want %d participants, %v", q, q.Err, participants, why)
			}
		}
		expect(1, nil)
		p.Disconnect()
		expect(1, actors.ErrSuspended)
		p.Refuse(false)
		expect(1, nil)
		s.Disconnect()
		expect(1, actors.ErrSuspended)
		s.Refuse(false)
		expect(1, nil)
		cancel()
		for range queues {
		}
		s.beSilent(true)
		ctx, cancel = context.WithCancel(context.Background())
		defer cancel()
		queues = remote.Observe(ctx, v.LockPath)
		s.silent <- messages.Reason_SESSION_LOST
		expect(0, actors.ErrSessionLost)
		s.beSilent(false)
		expect(1, nil)
		locktest.Unlock(v, g)
		expect(0, nil)
	})
}

// The log names the lock server where a process with ZooKeeper names that.
func TestSessionLogOfALockServer(t *testing.T) {
	log := &locktest.Log{}
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, p locktest.Process) {
		p.Disconnect()
		<-time.After(2 * locktest.SessionTimeout)
		p.Refuse(false)
		locktest.WaitState(v, remote, messages.SessionState_CONNECTED)
		synctest.Wait()
		for _, words := range [][]string{{"connection to lock server is lost", "look at lock server"}, {"lock server session is lost"}, {"there is a new lock server session"}} {
			if lines := log.With(words...); len(lines) != 1 {
				v.Errorf("%q: %q", words, lines)
			}
		}
		for _, line := range log.With() {
			if message, _, _ := strings.Cut(line, " session="); strings.Contains(message, "ZooKeeper") {
				v.Error(message)
			}
		}
	}, log.Config)
}

// Those participants are the client's own of which the server knows that.
func TestLocalIsOfTheClient(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, _ locktest.Process) {
		mu := remote.RWMutex(v.LockPath).Read()
		mine, others := locktest.Lock(v, mu, actors.WithOwner("mine")), locktest.Lock(v, mu)
		check := func(want ...bool) {
			v.Helper()
			all, err := mu.Participants(locktest.Within(v))
			locktest.Must(v, err)
			q, err := remote.Inspect(locktest.Within(v), v.LockPath)
			locktest.Must(v, err)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for _, participants := range [][]actors.Participant{all, q.Participants, (<-remote.Observe(ctx, v.LockPath)).Participants} {
				for i, p := range participants {
					if p.Local != want[i] {
						v.Errorf("%v: local is %v", p, p.Local)
					}
				}
			}
		}
		check(false, false)
		s.mine = func(from ask.Recipient) bool { return from.(lock.Acquisition).Owner() == "mine" }
		check(true, false)
		locktest.Unlock(v, mine)
		locktest.Unlock(v, others)
	})
}

// Whatever a client asks, it gets an error or an answer, and nothing panics.
func TestUnacceptableQuestions(t *testing.T) {
	remoteInBubble(t, func(v *locktest.Virtual, s *lockServer, remote *actors.Locks, _ locktest.Process) {
		answer := func(q *messages.Question) (answered bool, err error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = inspection.Answer(ctx, access.Manager(s.locks), q, nil, func([]byte) bool {
				answered = true
				return false
			})
			return answered, err
		}
		_, err := answer(&messages.Question{Kind: "unknown"})
		locktest.Is(v, err, actors.ErrInvalid)
		_, kinds, _ := strings.Cut(err.Error(), "one of ")
		mutex, multi := &messages.LockSpec{}, &messages.LockSpec{Recipe: messages.Recipe_MULTI_LOCK, Members: []*messages.Member{{Path: "/a", Lock: &messages.LockSpec{}}}}
		for _, kind := range strings.Split(kinds, ", ") {
			for _, path := range []string{"", "/", "/a", "a", "/zookeeper", "/actorlock/generation", "/a/b-lock-0000000001", "/a/\x00"} {
				for _, lock := range []*messages.LockSpec{nil, {}, {Recipe: messages.Recipe_SEMAPHORE}, {Recipe: messages.Recipe_SEMAPHORE, Permits: 2}, {Recipe: 9}, mutex, multi} {
					for _, arguments := range []string{"", "{}", "null", "1", "-1", "[]", "{", `"text"`, `{"Session":1,"Nodes":["/etc","",null]}`, `{"Nodes":[]}`, `{"Version":-1,"Value":99999999999}`} {
						q := &messages.Question{Kind: kind, Path: path, Lock: lock, Arguments: []byte(arguments)}
						if answered, err := answer(q); answered == (err != nil) {
							v.Errorf("%v: answered %v, %v", q, answered, err)
						}
						inspection.PathsOf(q)
					}
				}
			}
		}
		theirs := locktest.Lock(v, s.locks.Mutex("/theirs"))
		verify := func(path string, session int64) (value string) {
			q := &messages.Question{Kind: "verify", Path: path, Lock: mutex, Arguments: fmt.Appendf(nil, `{"Session":%d,"Nodes":[%q]}`, session, theirs.Node())}
			locktest.Must(v, inspection.Answer(context.Background(), access.Manager(s.locks), q, nil, func(v []byte) bool {
				value = string(v)
				return false
			}))
			return value
		}
		locktest.ExpectParts(v, verify("/mine", theirs.Session()), "is not of the lock /mine")
		locktest.ExpectParts(v, verify("/theirs", theirs.Session()+1), messages.Reason_SESSION_LOST.Error())
		if answer := verify("/theirs", theirs.Session()); answer != `{"value":{}}` {
			v.Error(answer)
		}
		locktest.Unlock(v, theirs)
	})
}
