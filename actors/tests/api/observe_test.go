package api

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
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// expectQueue receives queues until the outline of one is the wanted one.
func expectQueue(t testing.TB, queues <-chan actors.Queue, want string) actors.Queue {
	t.Helper()
	got, limit := []string{}, locktest.Within(t).Done()
	for {
		select {
		case q, ok := <-queues:
			if !ok {
				t.Fatalf("the channel is closed after %q, want %s", got, want)
			}
			if q.Err == nil && locktest.Outline(q) == want {
				return q
			}
			got = append(got, q.String()+" "+locktest.Outline(q))
		case <-limit:
			t.Fatalf("observed %q, want %s", got, want)
		}
	}
}

// expectObserverEnd waits until an observer's channel is closed.
func expectObserverEnd(t testing.TB, queues <-chan actors.Queue) {
	t.Helper()
	limit := locktest.Within(t).Done()
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

// observe observes the lock until Clean.
func observe(b *locktest.Fixture, locks *actors.Locks, path string) <-chan actors.Queue {
	ctx, cancel := context.WithCancel(context.Background())
	queues := locks.Observe(ctx, path)
	b.Cleanups = append(b.Cleanups, func() {
		cancel()
		expectObserverEnd(b, queues)
	})
	return queues
}

func TestObserve(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		here, there, reader := b.Locks(), b.Locks(), b.Locks()
		queues, others := observe(b, reader, b.LockPath), observe(b, reader, b.LockPath)
		expectQueue(b, queues, ":") // there is no directory yet
		g := locktest.Lock(b, here.Mutex(b.LockPath), actors.WithOwner("me"))
		q := expectQueue(b, queues, "mutex: exclusive!")
		if p := q.Participants[0]; p.Owner != "me" || p.Node != g.Node() || p.Token != g.Token() || p.Session != g.Session() {
			b.Errorf("%+v", p)
		}
		f := there.Mutex(b.LockPath).Acquire(locktest.Within(b))
		q = expectQueue(b, queues, "mutex: exclusive! exclusive")
		if q.Participants[0].Owner != "me" { // which the observer does not read again
			b.Errorf("%+v", q)
		}
		expectQueue(b, others, "mutex: exclusive! exclusive")
		locktest.Unlock(b, g)
		q = expectQueue(b, queues, "mutex: exclusive!")
		h := locktest.Result(b, f)
		if q.Participants[0].Node != h.Node() {
			b.Errorf("%+v, %v holds", q, h)
		}
		locktest.Unlock(b, h)
		expectQueue(b, queues, ":")
	})
}

func TestObserveASemaphore(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, reader := b.Locks(), b.Locks()
		queues := observe(b, reader, b.LockPath)
		s := locks.Semaphore(b.LockPath, 1)
		g := locktest.Lock(b, s)
		expectQueue(b, queues, "semaphore: permit!")
		f := s.Acquire(locktest.Within(b))
		expectQueue(b, queues, "semaphore: permit! permit")
		locktest.Unlock(b, g)
		expectQueue(b, queues, "semaphore: permit!")
		locktest.Unlock(b, locktest.Result(b, f))
		expectQueue(b, queues, ":")
	})
}

// An observer reads a node once, whichever library has made it.
func TestObserverReadsANodeOnce(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, d := b.Client(b), &locktest.Network{}
		queues := observe(b, b.Locks(d.Config), b.LockPath)
		const n = 40
		var nodes []*locktest.ForeignNode
		for range n {
			nodes = append(nodes, b.ForeignNode(conn, locktest.ForeignPrefixes["kazoo"]))
		}
		want := "mutex: exclusive!" + strings.Repeat(" exclusive", n-1)
		expectQueue(b, queues, want)
		_, ops := d.During(func() {
			nodes = append(nodes, b.ForeignNode(conn, locktest.ForeignPrefixes["zk-recipes"]))
			expectQueue(b, queues, want+" exclusive")
		})
		if reads := ops[embedded.OpGetData]; reads >= n/2 { // the new node, and the generation
			b.Errorf("%d reads for one new node", reads)
		}
		for _, node := range nodes {
			node.Leave()
		}
	})
}

// A node whose directory was deleted and made again is another node, though it has the name of a
// former one.
func TestObserveADirectoryMadeAgain(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		queues := observe(b, b.Locks(), b.LockPath)
		first := b.ForeignNode(conn, locktest.ForeignPrefixes["zk-recipes"])
		expectQueue(b, queues, "mutex: exclusive!")
		first.Leave()
		if err := conn.Delete(b.LockPath, -1); err != nil && !errors.Is(err, zk.ErrNoNode) { // the server may have deleted the empty container
			b.Fatal(err)
		}
		second := b.ForeignNode(conn, locktest.ForeignPrefixes["zk-recipes"])
		if second.Path != first.Path {
			b.Fatalf("%s, %s", first.Path, second.Path)
		}
		_, stat, err := conn.Get(second.Path)
		locktest.Must(b, err)
		for q := range queues {
			if len(q.Participants) > 0 && q.Participants[0].Token.Czxid == stat.Czxid {
				break
			}
		}
		second.Leave()
	})
}

// A slow reader receives the newest queue, and then the end of the channel.
func TestObserveSlowly(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu, reader := b.Mutex(), b.Locks()
		ctx, cancel := context.WithCancel(context.Background())
		slow, quick := reader.Observe(ctx, b.LockPath), observe(b, reader, b.LockPath)
		for range 20 {
			locktest.Unlock(b, locktest.Lock(b, mu))
		}
		g := locktest.Lock(b, mu)
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
		locktest.Unlock(b, g)
	})
}

// An observer goes on after the loss of its session, of the directory, and of rights.
func TestObserveGoesOn(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu, reader, conn := b.Mutex(), b.Locks(), b.Client(b)
		queues := observe(b, reader, b.LockPath)
		g := locktest.Lock(b, mu)
		expectQueue(b, queues, "mutex: exclusive!")
		b.ExpireSession(reader)
		f := mu.Acquire(locktest.Within(b))
		expectQueue(b, queues, "mutex: exclusive! exclusive")

		locktest.Must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err := conn.SetACL(b.LockPath, zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		locktest.Must(b, err)
		third := b.ForeignNode(conn, locktest.ForeignPrefixes["Curator"])
		b.ExpireSession(reader) // ZooKeeper sends no event to a client that may not read the names
		for q := range queues {
			if errors.Is(q.Err, actors.ErrNoAuth) { // after ErrSuspended
				if locktest.Outline(q) != "mutex: exclusive! exclusive" && locktest.Outline(q) != "mutex: exclusive! exclusive exclusive" {
					b.Errorf("%v", q)
				}
				break
			}
		}
		_, err = conn.SetACL(b.LockPath, zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		expectQueue(b, queues, "mutex: exclusive! exclusive exclusive")
		third.Leave()
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
		expectQueue(b, queues, ":")
		for {
			err := conn.Delete(b.LockPath, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) {
				break
			}
		}
		g = locktest.Lock(b, mu)
		q := expectQueue(b, queues, "mutex: exclusive!")
		if q.Participants[0].Node != g.Node() {
			b.Errorf("%+v", q)
		}
		locktest.Unlock(b, g)
	})
}

// Without a connection the observer sends the last queue again, with the reason.
func TestObserveWithoutAConnection(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu, proxy := b.Mutex(), zktest.Proxy(b, b.Addr())
		reader := locktest.Connect(b.T, proxy.Addr())
		queues := observe(b, reader, b.LockPath)
		g := locktest.Lock(b, mu)
		expectQueue(b, queues, "mutex: exclusive!")
		proxy.Refuse(true)
		proxy.Cut()
		for q := range queues {
			if q.Err != nil {
				locktest.Is(b, q.Err, actors.ErrSuspended)
				if locktest.Outline(q) != "mutex: exclusive!" {
					b.Errorf("%v", q)
				}
				break
			}
		}
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		proxy.Refuse(false)
		expectQueue(b, queues, "mutex: exclusive! exclusive")
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

func TestObserveEnds(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		queues := locks.Observe(context.Background(), b.LockPath)
		expectQueue(b, queues, ":")
		locktest.Must(b, locks.Close())
		expectObserverEnd(b, queues)
		expectObserverEnd(b, locks.Observe(context.Background(), b.LockPath)) // after Close
		for path, ctx := range map[string]context.Context{"relative": context.Background(), b.LockPath: nil} {
			queues := locks.Observe(ctx, path)
			q := <-queues
			locktest.Is(b, q.Err, actors.ErrInvalid)
			expectObserverEnd(b, queues)
		}
	})
}

// ObserveTo ends with its actor, and at once if the actor has ended before: no queue becomes a dead
// letter.
func TestObserveToEnds(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.AwaitDeadLetters()
		config, all := locktest.OwnerActors(v.T, 1)
		locks, mu, system := v.Locks(config), v.Mutex(), all[0].System
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
				g := locktest.Lock(v, mu)
				<-time.After(time.Second)
				locktest.Unlock(v, g)
				<-time.After(time.Second)
			}
		}
		locks.ObserveTo(v.Context(), v.LockPath, pid)
		useLock()
		locktest.Must(v, system.Root.StopFuture(pid).Wait())
		if queues == 0 {
			v.Error("the actor got no queue")
		}
		synctest.Wait()
		useLock()
		locks.ObserveTo(v.Context(), v.LockPath, pid)
		useLock()
		if n := dead.Load(); n > 1 { // one may have been on its way
			v.Errorf("%d queues were sent to the actor after its end", n)
		}
		v.Clean()
	})
}

// An actor gets the queues as messages.
func TestObserveTo(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		system := actor.NewActorSystem(locktest.WithoutLog...)
		b.Cleanups = append(b.Cleanups, system.Shutdown)
		locks := b.Locks(func(cfg *actors.Config) { cfg.System = system })
		queues := make(chan actors.Queue, 100)
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if q, ok := c.Message().(actors.Queue); ok {
				queues <- q
			}
		}))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		locks.ObserveTo(ctx, b.LockPath, pid)
		expectQueue(b, queues, ":")
		g := locktest.Lock(b, b.Mutex())
		expectQueue(b, queues, "mutex: exclusive!")
		locktest.Unlock(b, g)
		expectQueue(b, queues, ":")
	})
}
