//go:build unix

package actors_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// shortSession is the session timeout of processes that a test pauses for longer. It is long enough
// for a busy machine, which loses no other session.
const shortSession = 10 * time.Second

func (p *childProcess) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

func (p *childProcess) kill()   { p.signal(syscall.SIGKILL) }
func (p *childProcess) pause()  { p.signal(syscall.SIGSTOP) }
func (p *childProcess) resume() { p.signal(syscall.SIGCONT) }

// exit ends a process in good order, and so its session.
func (p *childProcess) exit() {
	p.t.Helper()
	must(p.t, p.in.Close())
	for range p.lines {
	}
}

func TestProcessKilledHolder(t *testing.T)  { each(t, killedHolder) }
func TestProcessPausedHolder(t *testing.T)  { each(t, pausedHolder) }
func TestProcessShortPause(t *testing.T)    { each(t, shortPause) }
func TestProcessKilledWaiters(t *testing.T) { each(t, killedWaiters) }
func TestProcessHandOff(t *testing.T)       { each(t, handOffAfterPause) }

// A holder is paused, and its follower is cut off from the leader just before the process goes on:
// the follower answers it for another two seconds. The holder does not believe in its session when
// the leader has expired it. Its margin, 2400 ms, is more than (syncLimit + 1/2) * tickTime.
func TestProcessPausedBesideACutOffFollower(t *testing.T) {
	const timeout = 12 * time.Second
	b := ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	follower, others := b.follower()
	p := startProcess(b, follower.Addr(), timeout, "")
	p.send("lock %s", b.path)
	first := p.granted()
	f := connect(b.T, others).Mutex(b.path).Acquire(within(b))
	granted := closedAt(f.Done())
	b.waitNodes(2)
	var latest time.Time // of its deadlines
	hasLost := func() bool {
		p.send("deadline")
		text, is := strings.CutPrefix(p.nextLine(), "deadline ")
		if nanos, err := strconv.ParseInt(text, 10, 64); is && err == nil {
			latest = time.Unix(0, max(latest.UnixNano(), nanos))
		}
		return !is
	}
	hasLost()
	p.pause()
	<-time.After(timeout * 3 / 10) // not half of it, after which the process gives up the connection
	follower.Isolate(b, true)
	p.resume()
	zktest.Eventually(b, timeLimit, hasLost, "the process has lost the lock")
	second := result(b, f)
	if late := latest.Sub(<-granted); late > 0 {
		b.Errorf("the deadline of the paused holder is %v after the next grant", late)
	}
	expectIncreasing(b, first, second.Token())
	p.kill()
	follower.Isolate(b, false)
	unlock(b, second)
	b.clean()
}

// The same on three servers.
func TestProcessEnsemble(t *testing.T) {
	all := ensemble(t)
	t.Run("all", func(t *testing.T) {
		for name, f := range map[string]func(*testLock){"killed holder": killedHolder, "paused holder": pausedHolder,
			"short pause": shortPause, "killed waiters": killedWaiters, "hand-off": handOffAfterPause} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onServer(t, all.Server, f)
			})
		}
	})
	if !t.Failed() {
		all.clean() // no watch is left
	}
}

// killedHolder kills a holder. The others hold in turn once its session is over.
func killedHolder(b *testLock) {
	p, q := startProcess(b, b.Addr(), shortSession, ""), startProcess(b, b.Addr(), longSession, "")
	p.send("lock %s", b.path)
	first := p.granted()
	q.send("lock %s", b.path)
	b.waitNodes(2)
	mu := b.mutex()
	waiting := mu.Acquire(within(b))
	b.waitNodes(3)
	q.expectNothing()
	p.kill()
	second := q.granted()
	expectIncreasing(b, first, second)
	b.waitNodes(2) // the node of the killed process is gone
	pending(b, waiting)
	q.send("unlock")
	q.expect("unlocked")
	g := result(b, waiting)
	expectIncreasing(b, second, g.Token())
	unlock(b, g)
	q.exit()
}

// startWriter starts a process that holds the lock, and that writes to a node of ZooKeeper and to a
// resource server until it stops.
func (b *testLock) startWriter(sessionTimeout time.Duration) (p *childProcess, token actors.Token, conn *zk.Conn, node string, d *resourceServer) {
	b.Helper()
	d, conn, node = newResourceServer(b), b.Client(b), b.path+"-resource"
	_, err := conn.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
	must(b, err)
	b.Cleanup(func() { conn.Delete(node, -1) })
	p = startProcess(b, b.Addr(), sessionTimeout, d.addr())
	p.send("lock %s", b.path)
	token = p.granted()
	p.send("write %s", node)
	p.expectAll("guarded write accepted", "write by token accepted")
	return p, token, conn, node, d
}

// pausedHolder pauses a holder until another contender holds the lock. The holder then learns of
// its loss before anything else, and its writes are refused.
func pausedHolder(b *testLock) {
	locks := b.locks()
	p, first, conn, node, d := b.startWriter(shortSession)
	p.expectNothing()
	waiting := locks.Mutex(b.path).Acquire(within(b))
	b.waitNodes(2)
	p.pause()
	g := result(b, waiting)
	expectIncreasing(b, first, g.Token())
	results, err := locks.Multi(within(b), g.Guard(&zk.SetDataRequest{Path: node, Data: []byte("ours"), Version: -1})...)
	must(b, err)
	mine, err := connectResources(d.addr())
	must(b, err)
	if _, accepted := mine.call("write", b.path, g.Token(), 0); !accepted {
		b.Error("the holder's write is refused")
	}
	p.resume()
	p.expectAll("resumed ZooKeeper session is lost", "lost ZooKeeper session is lost", "guarded write refused", "write by token refused")
	p.send("stop")
	p.expect("stopped") // and no write was accepted meanwhile
	data, stat, err := conn.Get(node)
	if err != nil || string(data) != "ours" || stat.Version != results[1].Stat.Version {
		b.Errorf("the node holds %q in version %d, not ours of %d: %v", data, stat.Version, results[1].Stat.Version, err)
	}
	if g.Err() != nil {
		b.Errorf("the new holder: %v", g.Err())
	}
	p.send("unlock")
	p.expect("not unlocked ZooKeeper session is lost")
	p.send("lock %s", b.path)
	b.waitNodes(2)
	p.expectNothing()
	unlock(b, g)
	expectIncreasing(b, g.Token(), p.granted())
	p.exit()
}

// expectAll waits for a line that begins with each of the words, in any order, and for no other
// line.
func (p *childProcess) expectAll(all ...string) {
	p.t.Helper()
	for len(all) > 0 {
		line, found := p.nextLine(), -1
		for i, words := range all {
			if strings.HasPrefix(line, words) {
				found = i
			}
		}
		if found < 0 {
			p.t.Fatalf("process %d prints %q, want one of %q", p.cmd.Process.Pid, line, all)
		}
		all = append(all[:found:found], all[found+1:]...)
	}
}

// shortPause pauses a holder for less than its session lasts. The holder then goes on to hold.
func shortPause(b *testLock) {
	p, first, conn, node, _ := b.startWriter(longSession)
	mu := b.mutex()
	p.pause()
	_, err := mu.Lock(within(b), actors.WithTimeout(time.Second))
	is(b, err, actors.ErrTimedOut)
	_, before, err := conn.Get(node)
	must(b, err)
	p.resume()
	zktest.Eventually(b, timeLimit, func() bool {
		_, now, err := conn.Get(node)
		return err == nil && now.Version > before.Version
	}, "it writes again")
	p.send("stop")
	p.expect("stopped")
	p.send("unlock")
	p.expect("unlocked")
	g := lock(b, mu)
	expectIncreasing(b, first, g.Token())
	unlock(b, g)
	p.exit()
}

// killedWaiters ends the sessions of the waiters in the middle of the queue. The waiter behind them
// does not hold before its turn.
func killedWaiters(b *testLock) {
	p, q := startProcess(b, b.Addr(), shortSession, ""), startProcess(b, b.Addr(), shortSession, "")
	mu, others := b.mutex(), b.locks()
	g := lock(b, mu)
	p.send("lock %s", b.path)
	b.waitNodes(2)
	q.send("lock %s", b.path)
	b.waitNodes(3)
	waiting := others.Mutex(b.path).Acquire(within(b))
	b.waitNodes(4)
	p.kill()
	q.pause()
	b.waitNodes(2)
	for range 3 { // round trips, in which the last waiter's process learns of the deletions
		unlock(b, lock(b, others.Mutex(b.path+"-other")))
	}
	pending(b, waiting)
	q.resume()
	b.waitNodes(3) // the resumed process queues again, at the end
	q.expectNothing()
	pending(b, waiting)
	unlock(b, g)
	h := result(b, waiting)
	q.expectNothing()
	unlock(b, h)
	expectIncreasing(b, h.Token(), q.granted())
	q.send("unlock")
	q.expect("unlocked")
	q.exit()
}

// handOffAfterPause has a holder that was paused release, while a waiter of its own process is next
// in line. The release of a lost grant does not grant the lock to that waiter.
func handOffAfterPause(b *testLock) {
	p := startProcess(b, b.Addr(), shortSession, "")
	mu := b.mutex()
	p.send("lock %s", b.path)
	first := p.granted()
	p.send("lock %s", b.path)
	b.waitNodes(2)
	waiting := mu.Acquire(within(b))
	b.waitNodes(3)
	p.pause()
	g := result(b, waiting)
	p.send("unlock") // which the process does first
	p.resume()
	p.expectAll("not unlocked ZooKeeper session is lost", "lost ZooKeeper session is lost")
	b.waitNodes(2) // the second request queues again
	p.expectNothing()
	unlock(b, g)
	expectIncreasing(b, first, g.Token(), p.granted())
	p.send("unlock")
	p.expect("unlocked")
	p.exit()
}
