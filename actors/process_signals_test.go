//go:build unix

package actors_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// short is the session timeout of processes that are to lose their session, but only then:
// it is long enough for a machine that is busy with other things.
const short = 10 * time.Second

func (p *childProcess) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

func (p *childProcess) kill()   { p.signal(syscall.SIGKILL) }
func (p *childProcess) pause()  { p.signal(syscall.SIGSTOP) }
func (p *childProcess) resume() { p.signal(syscall.SIGCONT) }

// leave ends a process in good order, and with it its session.
func (p *childProcess) leave() {
	p.t.Helper()
	must(p.t, p.in.Close())
	for range p.lines {
	}
}

func TestProcessKilledHolder(t *testing.T)  { besides(t, killedHolder) }
func TestProcessPausedHolder(t *testing.T)  { besides(t, pausedHolder) }
func TestProcessShortPause(t *testing.T)    { besides(t, shortPause) }
func TestProcessKilledWaiters(t *testing.T) { besides(t, killedWaiters) }
func TestProcessHandOff(t *testing.T)       { besides(t, handOffAfterPause) }

// The same on three servers.
func TestProcessEnsemble(t *testing.T) {
	all := three(t)
	t.Run("all", func(t *testing.T) {
		for name, f := range map[string]func(*testLock){"killed holder": killedHolder, "paused holder": pausedHolder,
			"short pause": shortPause, "killed waiters": killedWaiters, "hand-off": handOffAfterPause} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onServer(t, all.Server, f, true)
			})
		}
	})
	if !t.Failed() {
		all.clean() // no watch is left
	}
}

// killedHolder: the others hold once the session of a killed holder is over.
func killedHolder(b *testLock) {
	p, q := startProcess(b, b.Addr(), short, ""), startProcess(b, b.Addr(), calm, "")
	p.tell("lock %s", b.path)
	first := p.granted()
	q.tell("lock %s", b.path)
	b.waitNodes(2)
	mu := b.mutex()
	waiting := mu.Acquire(within(b))
	b.waitNodes(3)
	q.quiet()
	p.kill()
	second := q.granted()
	if second.Compare(first) <= 0 {
		b.Errorf("token %v after %v", second, first)
	}
	b.waitNodes(2) // the killed one's is gone
	pending(b, waiting)
	q.tell("unlock")
	q.hear("unlocked")
	g := result(b, waiting)
	if g.Token().Compare(second) <= 0 {
		b.Errorf("token %v after %v", g.Token(), second)
	}
	unlock(b, g)
	q.leave()
}

// insisting starts a process that holds the lock, and writes and writes to a node of
// ZooKeeper and to a resource server.
func (b *testLock) insisting(timeout time.Duration) (p *childProcess, token actors.Token, conn *zk.Conn, stock string, d *resourceServer) {
	b.Helper()
	d, conn, stock = newResourceServer(b), b.Client(b), b.path+"-stock"
	_, err := conn.Create(stock, nil, 0, zk.WorldACL(zk.PermAll))
	must(b, err)
	b.Cleanup(func() { conn.Delete(stock, -1) })
	p = startProcess(b, b.Addr(), timeout, d.addr())
	p.tell("lock %s", b.path)
	token = p.granted()
	p.tell("insist %s", stock)
	p.await("guarded write accepted", "write by token accepted")
	return p, token, conn, stock, d
}

// pausedHolder: a holder is paused until another has the lock. It learns of its loss
// before all else, and whatever it goes on to write is refused.
func pausedHolder(b *testLock) {
	locks := b.locks()
	p, first, conn, stock, d := b.insisting(short)
	p.quiet()
	waiting := locks.Mutex(b.path).Acquire(within(b))
	b.waitNodes(2)
	p.pause()
	g := result(b, waiting)
	if g.Token().Compare(first) <= 0 {
		b.Errorf("token %v after %v", g.Token(), first)
	}
	results, err := locks.Multi(within(b), g.Guard(&zk.SetDataRequest{Path: stock, Data: []byte("ours"), Version: -1})...)
	must(b, err)
	mine, err := connectResources(d.addr())
	must(b, err)
	if _, accepted := mine.do("write", b.path, g.Token(), 0); !accepted {
		b.Error("the holder's write is refused")
	}
	p.resume()
	p.await("woken ZooKeeper session is lost", "lost ZooKeeper session is lost", "guarded write refused", "write by token refused")
	p.tell("rest")
	p.hear("rested") // and nothing was accepted meanwhile
	data, stat, err := conn.Get(stock)
	if err != nil || string(data) != "ours" || stat.Version != results[1].Stat.Version {
		b.Errorf("the node holds %q in version %d, not ours of %d: %v", data, stat.Version, results[1].Stat.Version, err)
	}
	if g.Err() != nil {
		b.Errorf("the new holder: %v", g.Err())
	}
	p.tell("unlock")
	p.hear("not unlocked ZooKeeper session is lost")
	p.tell("lock %s", b.path)
	b.waitNodes(2)
	p.quiet()
	unlock(b, g)
	if again := p.granted(); again.Compare(g.Token()) <= 0 {
		b.Errorf("token %v after %v", again, g.Token())
	}
	p.leave()
}

// await hears lines that begin so, in any order, and nothing else.
func (p *childProcess) await(all ...string) {
	p.t.Helper()
	for len(all) > 0 {
		line, found := p.next(), -1
		for i, words := range all {
			if strings.HasPrefix(line, words) {
				found = i
			}
		}
		if found < 0 {
			p.t.Fatalf("process %d says %q, none of %q", p.cmd.Process.Pid, line, all)
		}
		all = append(all[:found:found], all[found+1:]...)
	}
}

// shortPause: a holder that was paused for less than its session lasts goes on.
func shortPause(b *testLock) {
	p, first, conn, stock, _ := b.insisting(calm)
	mu := b.mutex()
	p.pause()
	_, err := mu.Lock(within(b), actors.WithTimeout(time.Second))
	is(b, err, actors.ErrTimedOut)
	_, before, err := conn.Get(stock)
	must(b, err)
	p.resume()
	zktest.Eventually(b, patience, func() bool {
		_, now, err := conn.Get(stock)
		return err == nil && now.Version > before.Version
	}, "it writes again")
	p.tell("rest")
	p.hear("rested")
	p.tell("unlock")
	p.hear("unlocked")
	g := lock(b, mu)
	if g.Token().Compare(first) <= 0 {
		b.Errorf("token %v after %v", g.Token(), first)
	}
	unlock(b, g)
	p.leave()
}

// killedWaiters: those in the middle of the queue go, and the one behind them must not
// take that for its turn.
func killedWaiters(b *testLock) {
	p, q := startProcess(b, b.Addr(), short, ""), startProcess(b, b.Addr(), short, "")
	mu, others := b.mutex(), b.locks()
	g := lock(b, mu)
	p.tell("lock %s", b.path)
	b.waitNodes(2)
	q.tell("lock %s", b.path)
	b.waitNodes(3)
	waiting := others.Mutex(b.path).Acquire(within(b))
	b.waitNodes(4)
	p.kill()
	q.pause()
	b.waitNodes(2)
	for range 3 { // round trips, in which the last one's session hears and asks
		unlock(b, lock(b, others.Mutex(b.path+"-other")))
	}
	pending(b, waiting)
	q.resume()
	b.waitNodes(3) // it queues again, as the last one
	q.quiet()
	pending(b, waiting)
	unlock(b, g)
	h := result(b, waiting)
	q.quiet()
	unlock(b, h)
	if token := q.granted(); token.Compare(h.Token()) <= 0 {
		b.Errorf("token %v after %v", token, h.Token())
	}
	q.tell("unlock")
	q.hear("unlocked")
	q.leave()
}

// handOffAfterPause: a holder that was paused releases, and the next one in line is of
// its own process. It must not have the lock for that.
func handOffAfterPause(b *testLock) {
	p := startProcess(b, b.Addr(), short, "")
	mu := b.mutex()
	p.tell("lock %s", b.path)
	first := p.granted()
	p.tell("lock %s", b.path)
	b.waitNodes(2)
	waiting := mu.Acquire(within(b))
	b.waitNodes(3)
	p.pause()
	g := result(b, waiting)
	p.tell("unlock") // the first thing that it will do
	p.resume()
	p.await("not unlocked ZooKeeper session is lost", "lost ZooKeeper session is lost")
	b.waitNodes(2) // the second one queues again
	p.quiet()
	unlock(b, g)
	if second := p.granted(); g.Token().Compare(first) <= 0 || second.Compare(g.Token()) <= 0 {
		b.Errorf("tokens %v, %v, %v", first, g.Token(), second)
	}
	p.tell("unlock")
	p.hear("unlocked")
	p.leave()
}
