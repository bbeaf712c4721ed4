package actors_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// expectQueue receives queues until the outline of one is the wanted one.
func expectQueue(t testing.TB, queues <-chan actors.Queue, want string) actors.Queue {
	t.Helper()
	got, limit := []string{}, within(t).Done()
	for {
		select {
		case q, ok := <-queues:
			if !ok {
				t.Fatalf("the channel is closed after %q, want %s", got, want)
			}
			if q.Err == nil && outline(q) == want {
				return q
			}
			got = append(got, q.String()+" "+outline(q))
		case <-limit:
			t.Fatalf("observed %q, want %s", got, want)
		}
	}
}

// expectObserverEnd waits until an observer's channel is closed.
func expectObserverEnd(t testing.TB, queues <-chan actors.Queue) {
	t.Helper()
	limit := within(t).Done()
	for {
		select {
		case _, ok := <-queues:
			if !ok {
				return
			}
		case <-limit:
			t.Fatal("the channel is not closed")
		}
	}
}

// observe observes the lock until clean.
func (b *testLock) observe(locks *actors.Locks, path string) <-chan actors.Queue {
	ctx, cancel := context.WithCancel(context.Background())
	queues := locks.Observe(ctx, path)
	b.cleanups = append(b.cleanups, func() {
		cancel()
		expectObserverEnd(b, queues)
	})
	return queues
}

func TestObserve(t *testing.T) {
	each(t, func(b *testLock) {
		here, there, reader := b.locks(), b.locks(), b.locks()
		queues, others := b.observe(reader, b.path), b.observe(reader, b.path)
		expectQueue(b, queues, ":") // there is no directory yet
		g := lock(b, here.Mutex(b.path), actors.WithOwner("me"))
		q := expectQueue(b, queues, "mutex: exclusive!")
		if p := q.Participants[0]; p.Owner != "me" || p.Node != g.Node() || p.Token != g.Token() || p.Session != g.Session() {
			b.Errorf("%+v", p)
		}
		f := there.Mutex(b.path).Acquire(within(b))
		q = expectQueue(b, queues, "mutex: exclusive! exclusive")
		if q.Participants[0].Owner != "me" { // which the observer does not read again
			b.Errorf("%+v", q)
		}
		expectQueue(b, others, "mutex: exclusive! exclusive")
		unlock(b, g)
		q = expectQueue(b, queues, "mutex: exclusive!")
		h := result(b, f)
		if q.Participants[0].Node != h.Node() {
			b.Errorf("%+v, %v holds", q, h)
		}
		unlock(b, h)
		expectQueue(b, queues, ":")
	})
}

func TestObserveASemaphore(t *testing.T) {
	each(t, func(b *testLock) {
		locks, reader := b.locks(), b.locks()
		queues := b.observe(reader, b.path)
		s := locks.Semaphore(b.path, 1)
		g := lock(b, s)
		expectQueue(b, queues, "semaphore: permit!")
		f := s.Acquire(within(b))
		expectQueue(b, queues, "semaphore: permit! permit")
		unlock(b, g)
		expectQueue(b, queues, "semaphore: permit!")
		unlock(b, result(b, f))
		expectQueue(b, queues, ":")
	})
}

// An observer reads a node once, whichever library has made it.
func TestObserverReadsANodeOnce(t *testing.T) {
	each(t, func(b *testLock) {
		conn, d := b.Client(b), &dialer{}
		queues := b.observe(b.locks(d.config), b.path)
		const n = 40
		var nodes []*foreignNode
		for range n {
			nodes = append(nodes, b.foreignNode(conn, foreignPrefixes["kazoo"]))
		}
		want := "mutex: exclusive!" + strings.Repeat(" exclusive", n-1)
		expectQueue(b, queues, want)
		_, ops := d.during(func() {
			nodes = append(nodes, b.foreignNode(conn, foreignPrefixes["zk-recipes"]))
			expectQueue(b, queues, want+" exclusive")
		})
		if reads := ops[embedded.OpGetData]; reads >= n/2 { // the new node, and the generation
			b.Errorf("%d reads for one new node", reads)
		}
		for _, node := range nodes {
			node.leave()
		}
	})
}

// A node whose directory was deleted and made again is another node, though it has the name of a
// former one.
func TestObserveADirectoryMadeAgain(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		conn := b.Client(b)
		queues := b.observe(b.locks(), b.path)
		first := b.foreignNode(conn, foreignPrefixes["zk-recipes"])
		expectQueue(b, queues, "mutex: exclusive!")
		first.leave()
		if err := conn.Delete(b.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) { // the server may have deleted the empty container
			b.Fatal(err)
		}
		second := b.foreignNode(conn, foreignPrefixes["zk-recipes"])
		if second.path != first.path {
			b.Fatalf("%s, %s", first.path, second.path)
		}
		_, stat, err := conn.Get(second.path)
		must(b, err)
		for q := range queues {
			if len(q.Participants) > 0 && q.Participants[0].Token.Czxid == stat.Czxid {
				break
			}
		}
		second.leave()
	})
}

// A slow reader receives the newest queue, and then the end of the channel.
func TestObserveSlowly(t *testing.T) {
	each(t, func(b *testLock) {
		mu, reader := b.mutex(), b.locks()
		ctx, cancel := context.WithCancel(context.Background())
		slow, quick := reader.Observe(ctx, b.path), b.observe(reader, b.path)
		for range 20 {
			unlock(b, lock(b, mu))
		}
		g := lock(b, mu)
		for q := range quick {
			if len(q.Participants) == 1 && q.Participants[0].Node == g.Node() {
				break
			}
		}
		// The queue that slow receives is at most as old as its last read, which ends soon.
		for q := range slow {
			if len(q.Participants) == 1 && q.Participants[0].Node == g.Node() {
				break
			}
		}
		cancel()
		expectObserverEnd(b, slow)
		unlock(b, g)
	})
}

// An observer goes on after the loss of its session, of the directory, and of rights.
func TestObserveGoesOn(t *testing.T) {
	each(t, func(b *testLock) {
		mu, reader, conn := b.mutex(), b.locks(), b.Client(b)
		queues := b.observe(reader, b.path)
		g := lock(b, mu)
		expectQueue(b, queues, "mutex: exclusive!")
		b.expire(reader)
		f := mu.Acquire(within(b))
		expectQueue(b, queues, "mutex: exclusive! exclusive")

		must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err := conn.SetACL(b.path, zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		must(b, err)
		third := b.foreignNode(conn, foreignPrefixes["Curator"])
		b.expire(reader) // ZooKeeper sends no event to a client that may not read the names
		for q := range queues {
			if errors.Is(q.Err, actors.ErrNoAuth) { // after ErrSuspended
				if outline(q) != "mutex: exclusive! exclusive" && outline(q) != "mutex: exclusive! exclusive exclusive" {
					b.Errorf("%v", q)
				}
				break
			}
		}
		_, err = conn.SetACL(b.path, zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		expectQueue(b, queues, "mutex: exclusive! exclusive exclusive")
		third.leave()
		unlock(b, g)
		unlock(b, result(b, f))
		expectQueue(b, queues, ":")
		for {
			err := conn.Delete(b.path, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) {
				break
			}
		}
		g = lock(b, mu)
		q := expectQueue(b, queues, "mutex: exclusive!")
		if q.Participants[0].Node != g.Node() {
			b.Errorf("%+v", q)
		}
		unlock(b, g)
	})
}

// Without a connection the observer sends the last queue again, with the reason.
func TestObserveWithoutAConnection(t *testing.T) {
	each(t, func(b *testLock) {
		mu, proxy := b.mutex(), zktest.Proxy(b, b.Addr())
		reader := connect(b.T, proxy.Addr())
		queues := b.observe(reader, b.path)
		g := lock(b, mu)
		expectQueue(b, queues, "mutex: exclusive!")
		proxy.Refuse(true)
		proxy.Cut()
		for q := range queues {
			if q.Err != nil {
				is(b, q.Err, actors.ErrSuspended)
				if outline(q) != "mutex: exclusive!" {
					b.Errorf("%v", q)
				}
				break
			}
		}
		f := mu.Acquire(within(b))
		b.waitNodes(2)
		proxy.Refuse(false)
		expectQueue(b, queues, "mutex: exclusive! exclusive")
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

func TestObserveEnds(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		queues := locks.Observe(context.Background(), b.path)
		expectQueue(b, queues, ":")
		must(b, locks.Close())
		expectObserverEnd(b, queues)
		expectObserverEnd(b, locks.Observe(context.Background(), b.path)) // after Close
		for path, ctx := range map[string]context.Context{"relative": context.Background(), b.path: nil} {
			queues := locks.Observe(ctx, path)
			q := <-queues
			is(b, q.Err, actors.ErrInvalid)
			expectObserverEnd(b, queues)
		}
	})
}

// ObserveTo ends with its actor, and at once if the actor has ended before: no queue becomes a dead
// letter.
func TestObserveToEnds(t *testing.T) {
	bubble(t, func(v *virtual) {
		v.awaitDeadLetters()
		config, all := testActors(v.T, 1)
		locks, mu, system := v.locks(config), v.mutex(), all[0].system
		var dead atomic.Int32
		system.EventStream.Subscribe(func(e any) {
			if letter, is := e.(*actor.DeadLetterEvent); is {
				if _, is := letter.Message.(actors.Queue); is {
					dead.Add(1)
				}
			}
		})
		queues := 0
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, is := c.Message().(actors.Queue); is {
				queues++
			}
		}))
		useLock := func() {
			for range 3 {
				g := lock(v, mu)
				<-time.After(time.Second)
				unlock(v, g)
				<-time.After(time.Second)
			}
		}
		locks.ObserveTo(v.Context(), v.path, pid)
		useLock()
		must(v, system.Root.StopFuture(pid).Wait())
		if queues == 0 {
			v.Error("the actor got no queue")
		}
		synctest.Wait()
		useLock()
		locks.ObserveTo(v.Context(), v.path, pid)
		useLock()
		if n := dead.Load(); n > 1 { // one may have been on its way
			v.Errorf("%d queues were sent to the actor after its end", n)
		}
		v.clean()
	})
}

// An actor gets the queues as messages.
func TestObserveTo(t *testing.T) {
	each(t, func(b *testLock) {
		system := actor.NewActorSystem(withoutLog...)
		b.cleanups = append(b.cleanups, system.Shutdown)
		locks := b.locks(func(cfg *actors.Config) { cfg.System = system })
		queues := make(chan actors.Queue, 100)
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if q, ok := c.Message().(actors.Queue); ok {
				queues <- q
			}
		}))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		locks.ObserveTo(ctx, b.path, pid)
		expectQueue(b, queues, ":")
		g := lock(b, b.mutex())
		expectQueue(b, queues, "mutex: exclusive!")
		unlock(b, g)
		expectQueue(b, queues, ":")
	})
}
