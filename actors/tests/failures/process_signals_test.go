//go:build unix

package failures

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// shortSession is the session timeout of processes that a test pauses for longer. It is long enough
// for a busy machine, which loses no other session.
const shortSession = 10 * time.Second

func TestProcessKilledHolder(t *testing.T)  { seldom(t, killedHolder) }
func TestProcessPausedHolder(t *testing.T)  { seldom(t, pausedHolder) }
func TestProcessShortPause(t *testing.T)    { locktest.Each(t, shortPause) }
func TestProcessKilledWaiters(t *testing.T) { seldom(t, killedWaiters) }
func TestProcessHandOff(t *testing.T)       { seldom(t, handOffAfterPause) }

// seldom is locktest.Each in one run of eight by habit: f waits for the end of a session.
func seldom(t *testing.T, f func(b *locktest.Fixture)) {
	t.Helper()
	zktest.OneRunIn(t, 8)
	locktest.Each(t, f)
}

// A holder is paused, and its follower is cut off from the leader just before the process goes on:
// the follower answers it for another two seconds. The holder does not believe in its session when
// the leader has expired it. Its margin, 2400 ms, is more than (syncLimit + 1/2) * tickTime.
func TestProcessPausedBesideACutOffFollower(t *testing.T) {
	const timeout = 12 * time.Second
	b := locktest.Ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	follower, others := follower(b)
	p := locktest.StartProcess(b, follower.Addr(), timeout, "")
	p.Send("lock %s", b.LockPath)
	first := p.Granted()
	f := locktest.Connect(b.T, others).Mutex(b.LockPath).Acquire(locktest.Within(b))
	granted := closedAt(f.Done())
	b.WaitNodes(2)
	var latest time.Time // of its deadlines
	hasLost := func() bool {
		p.Send("deadline")
		text, is := strings.CutPrefix(p.NextLine(), "deadline ")
		if nanos, err := strconv.ParseInt(text, 10, 64); is && err == nil {
			latest = time.Unix(0, max(latest.UnixNano(), nanos))
		}
		return !is
	}
	hasLost()
	p.Pause()
	<-time.After(timeout * 3 / 10) // not half of it, after which the process gives up the connection
	follower.Isolate(b, true)
	p.Resume()
	zktest.Eventually(b, zktest.TimeLimit, hasLost, "the process has lost the lock")
	second := locktest.Result(b, f)
	if late := latest.Sub(<-granted); late > 0 {
		b.Errorf("the deadline of the paused holder is %v after the next grant", late)
	}
	locktest.ExpectIncreasing(b, first, second.Token())
	p.Kill()
	follower.Isolate(b, false)
	locktest.Unlock(b, second)
	b.Clean()
}

// The same on three servers.
func TestProcessEnsemble(t *testing.T) {
	all := locktest.Ensemble(t)
	t.Run("all", func(t *testing.T) {
		for name, f := range map[string]func(*locktest.Fixture){"killed holder": killedHolder, "paused holder": pausedHolder,
			"short pause": shortPause, "killed waiters": killedWaiters, "hand-off": handOffAfterPause} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				locktest.OnServer(t, all.Server, f)
			})
		}
	})
	if !t.Failed() {
		all.Clean() // no watch is left
	}
}

// killedHolder kills a holder. The others hold in turn once its session is over.
func killedHolder(b *locktest.Fixture) {
	p, q := locktest.StartProcess(b, b.Addr(), shortSession, ""), locktest.StartProcess(b, b.Addr(), locktest.LongSession, "")
	p.Send("lock %s", b.LockPath)
	first := p.Granted()
	q.Send("lock %s", b.LockPath)
	b.WaitNodes(2)
	mu := b.Mutex()
	waiting := mu.Acquire(locktest.Within(b))
	b.WaitNodes(3)
	q.ExpectNothing()
	p.Kill()
	second := q.Granted()
	locktest.ExpectIncreasing(b, first, second)
	b.WaitNodes(2) // the node of the killed process is gone
	locktest.Pending(b, waiting)
	q.Send("unlock")
	q.Expect("unlocked")
	g := locktest.Result(b, waiting)
	locktest.ExpectIncreasing(b, second, g.Token())
	locktest.Unlock(b, g)
	q.Exit()
}

// startWriter starts a process that holds the lock, and that writes to a node of ZooKeeper and to a
// resource server until it stops.
func startWriter(b *locktest.Fixture, sessionTimeout time.Duration) (p *locktest.ChildProcess, token actors.Token, conn *zk.Conn, node string, d *resourceServer) {
	b.Helper()
	d, conn, node = newResourceServer(b), b.Client(b), b.LockPath+"-resource"
	_, err := conn.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
	locktest.Must(b, err)
	b.Cleanup(func() { conn.Delete(node, -1) })
	p = locktest.StartProcess(b, b.Addr(), sessionTimeout, d.addr())
	p.Send("lock %s", b.LockPath)
	token = p.Granted()
	p.Send("write %s", node)
	p.ExpectAll("guarded write accepted", "write by token accepted")
	return p, token, conn, node, d
}

// pausedHolder pauses a holder until another contender holds the lock. The holder then learns of
// its loss before anything else, and its writes are refused.
func pausedHolder(b *locktest.Fixture) {
	locks := b.Locks()
	p, first, conn, node, d := startWriter(b, shortSession)
	p.ExpectNothing()
	waiting := locks.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(2)
	p.Pause()
	g := locktest.Result(b, waiting)
	locktest.ExpectIncreasing(b, first, g.Token())
	results, err := locks.Multi(locktest.Within(b), g.Guard(&zk.SetDataRequest{Path: node, Data: []byte("ours"), Version: -1})...)
	locktest.Must(b, err)
	mine, err := connectResources(d.addr())
	locktest.Must(b, err)
	if _, accepted := mine.call("write", b.LockPath, g.Token(), 0); !accepted {
		b.Error("the holder's write is refused")
	}
	p.Resume()
	p.ExpectAll("resumed session is lost", "lost session is lost", "guarded write refused", "write by token refused")
	p.Send("stop")
	p.Expect("stopped") // and no write was accepted meanwhile
	data, stat, err := conn.Get(node)
	if err != nil || string(data) != "ours" || stat.Version != results[1].Stat.Version {
		b.Errorf("the node holds %q in version %d, not ours of %d: %v", data, stat.Version, results[1].Stat.Version, err)
	}
	if g.Err() != nil {
		b.Errorf("the new holder: %v", g.Err())
	}
	p.Send("unlock")
	p.Expect("not unlocked session is lost")
	p.Send("lock %s", b.LockPath)
	b.WaitNodes(2)
	p.ExpectNothing()
	locktest.Unlock(b, g)
	locktest.ExpectIncreasing(b, g.Token(), p.Granted())
	p.Exit()
}

// shortPause pauses a holder for less than its session lasts. The holder then goes on to hold.
func shortPause(b *locktest.Fixture) {
	p, first, conn, node, _ := startWriter(b, locktest.LongSession)
	mu := b.Mutex()
	p.Pause()
	_, err := mu.Lock(locktest.Within(b), actors.WithTimeout(time.Second))
	locktest.Is(b, err, actors.ErrTimedOut)
	_, before, err := conn.Get(node)
	locktest.Must(b, err)
	p.Resume()
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		_, now, err := conn.Get(node)
		return err == nil && now.Version > before.Version
	}, "it writes again")
	p.Send("stop")
	p.Expect("stopped")
	p.Send("unlock")
	p.Expect("unlocked")
	g := locktest.Lock(b, mu)
	locktest.ExpectIncreasing(b, first, g.Token())
	locktest.Unlock(b, g)
	p.Exit()
}

// killedWaiters ends the sessions of the waiters in the middle of the queue. The waiter behind them
// does not hold before its turn.
func killedWaiters(b *locktest.Fixture) {
	p, q := locktest.StartProcess(b, b.Addr(), shortSession, ""), locktest.StartProcess(b, b.Addr(), shortSession, "")
	mu, others := b.Mutex(), b.Locks()
	g := locktest.Lock(b, mu)
	p.Send("lock %s", b.LockPath)
	b.WaitNodes(2)
	q.Send("lock %s", b.LockPath)
	b.WaitNodes(3)
	waiting := others.Mutex(b.LockPath).Acquire(locktest.Within(b))
	b.WaitNodes(4)
	p.Kill()
	q.Pause()
	b.WaitNodes(2)
	for range 3 { // round trips, in which the last waiter's process learns of the deletions
		locktest.Unlock(b, locktest.Lock(b, others.Mutex(b.LockPath+"-other")))
	}
	locktest.Pending(b, waiting)
	q.Resume()
	b.WaitNodes(3) // the resumed process queues again, at the end
	q.ExpectNothing()
	locktest.Pending(b, waiting)
	locktest.Unlock(b, g)
	h := locktest.Result(b, waiting)
	q.ExpectNothing()
	locktest.Unlock(b, h)
	locktest.ExpectIncreasing(b, h.Token(), q.Granted())
	q.Send("unlock")
	q.Expect("unlocked")
	q.Exit()
}

// handOffAfterPause has a holder that was paused release, while a waiter of its own process is next
// in line. The release of a lost grant does not grant the lock to that waiter.
func handOffAfterPause(b *locktest.Fixture) {
	p := locktest.StartProcess(b, b.Addr(), shortSession, "")
	mu := b.Mutex()
	p.Send("lock %s", b.LockPath)
	first := p.Granted()
	p.Send("lock %s", b.LockPath)
	b.WaitNodes(2)
	waiting := mu.Acquire(locktest.Within(b))
	b.WaitNodes(3)
	p.Pause()
	g := locktest.Result(b, waiting)
	p.Send("unlock") // which the process does first
	p.Resume()
	p.ExpectAll("not unlocked session is lost", "lost session is lost")
	b.WaitNodes(2) // the second request queues again
	p.ExpectNothing()
	locktest.Unlock(b, g)
	locktest.ExpectIncreasing(b, first, g.Token(), p.Granted())
	p.Send("unlock")
	p.Expect("unlocked")
	p.Exit()
}
