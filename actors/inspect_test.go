package actors_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// outline returns a queue as a short text: "mutex: exclusive! exclusive" for a holder and a waiter.
func outline(q actors.Queue) string {
	text := q.Recipe + ":"
	for i, p := range q.Participants {
		text += " " + p.Kind
		if p.Holds {
			text += "!"
		}
		if p.Ahead > i {
			text += fmt.Sprintf(" (%d ahead of place %d)", p.Ahead, i)
		}
	}
	return text
}

func inspect(t testing.TB, locks *actors.Locks, path string) actors.Queue {
	t.Helper()
	q, err := locks.Inspect(within(t), path)
	must(t, err)
	if q.Path != path {
		t.Errorf("path %q, want %q", q.Path, path)
	}
	return q
}

// waitQueue waits until the outline of the queue is the wanted one.
func waitQueue(t testing.TB, locks *actors.Locks, path, want string) actors.Queue {
	t.Helper()
	var q actors.Queue
	got := []string{""} // whose element Eventually prints
	zktest.Eventually(t, timeLimit, func() bool {
		q = inspect(t, locks, path)
		got[0] = outline(q)
		return got[0] == want
	}, "the queue is %v, want %s", &got, want)
	return q
}

func TestInspectEachRecipe(t *testing.T) {
	each(t, func(b *testLock) {
		locks, reader := b.locks(), b.locks()
		rw := locks.RWMutex(b.path + "-rw")
		for _, c := range []struct {
			first, second handle
			want          string
		}{
			{locks.Mutex(b.path + "-m"), locks.Mutex(b.path + "-m"), "mutex: exclusive! exclusive"},
			{rw.Read(), rw.Write(), "read-write: read! write"},
			{rw.Read(), rw.Read(), "read-write: read! read!"},
			{rw.Write(), rw.Read(), "read-write: write! read"},
			{locks.Mutex(b.path+"-d", actors.LockDelay(time.Second)), locks.Mutex(b.path+"-d", actors.LockDelay(time.Second)), "mutex: exclusive! exclusive"},
			{locks.Semaphore(b.path+"-s", 1), locks.Semaphore(b.path+"-s", 1), "semaphore: permit! permit"},
		} {
			g := lock(b, c.first, actors.WithOwner("first"))
			f := c.second.Acquire(within(b))
			q := waitQueue(b, reader, g.Path(), c.want)
			holder := q.Participants[0]
			host, _ := os.Hostname()
			if holder.Node != g.Node() || holder.Session != g.Session() || holder.Token != g.Token() || holder.Mine ||
				holder.Host != host || holder.PID != os.Getpid() || holder.Program == "" || holder.Data != nil ||
				holder.Owner != "first" || time.Since(holder.Since) > timeLimit {
				b.Errorf("%s: %+v of %v", c.want, holder, g)
			}
			if q := inspect(b, locks, g.Path()); !q.Participants[0].Mine {
				b.Errorf("not of this process: %v", q)
			}
			unlock(b, g)
			unlock(b, result(b, f))
			waitQueue(b, reader, g.Path(), ":")
		}
	})
}

func TestInspectUnused(t *testing.T) {
	each(t, func(b *testLock) {
		locks, conn := b.locks(), b.Client(b)
		q := inspect(b, locks, b.path+"/none/below")
		if want := b.path + "/none/below: not in use"; outline(q) != ":" || q.String() != want {
			b.Errorf("%v, want %s", q, want)
		}
		for _, path := range []string{"relative", "/", "/actorlock/sessions", "/a//b"} {
			_, err := locks.Inspect(within(b), path)
			is(b, err, actors.ErrInvalid)
		}
		// Directories of locks and other nodes are no contenders.
		for _, path := range []string{b.path, b.path + "/locks", b.path + "/leases", b.path + "/lock", b.path + "/W",
			b.path + "/0123456789abcdef0123456789abcdef", b.path + "/config"} {
			_, err := conn.Create(path, []byte("data"), 0, zk.WorldACL(zk.PermAll))
			must(b, err)
			b.cleanups = append(b.cleanups, func() { conn.Delete(path, -1) })
		}
		slices.Reverse(b.cleanups)
		for _, path := range []string{b.path, b.path + "/config", b.path + "/locks"} {
			if q := inspect(b, locks, path); outline(q) != ":" {
				b.Errorf("%s: %s", path, outline(q))
			}
		}
		// Locks at the paths of a semaphore's directories.
		for _, name := range []string{"/locks", "/leases"} {
			g := lock(b, locks.Mutex(b.path+name))
			if q := inspect(b, locks, b.path); name == "/leases" && outline(q) != ":" {
				b.Errorf("with a mutex at %s: %s", name, outline(q))
			}
			unlock(b, g)
		}
	})
}

// Inspect returns the leases as holders that hold by the number of permits. If the leases do not
// show the number, it returns those that hold for certain.
func TestInspectASemaphore(t *testing.T) {
	t.Parallel()
	for permits, options := range map[int]func(path string) []actors.LockOption{
		3: func(string) []actors.LockOption { return nil },
		0: func(path string) []actors.LockOption {
			return []actors.LockOption{actors.SharedPermits(path + "-count")}
		},
	} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) {
			each(t, func(b *testLock) { inspectASemaphore(b, permits, options(b.path)...) })
		})
	}
}

func inspectASemaphore(b *testLock, permits int, options ...actors.LockOption) {
	here, there, reader := b.locks(), b.locks(), b.locks()
	two := lock(b, here.Semaphore(b.path, 3, options...), actors.Permits(2), actors.WithOwner("two"))
	one := lock(b, there.Semaphore(b.path, 3, options...), actors.WithData([]byte("one")))
	waitQueue(b, reader, b.path, "semaphore: permit! permit! permit!")
	wait := there.Semaphore(b.path, 3, options...).Acquire(within(b), actors.Permits(2), actors.WithOwner("waits"))
	// The last three leases are of one session. The third has another transaction.
	q := waitQueue(b, reader, b.path, "semaphore: permit! permit! permit! permit permit")
	if q.Permits != permits || q.Participants[0].Permits != permits || q.Participants[1].Owner != "two" || string(q.Participants[2].Data) != "one" ||
		q.Participants[3].Owner != "waits" {
		b.Errorf("%+v", q)
	}
	if q := inspect(b, reader, b.path+"/leases"); q.Recipe != "semaphore" || len(q.Participants) != 5 {
		b.Errorf("%v of the leases", q)
	}
	unlock(b, two)
	unlock(b, result(b, wait))
	unlock(b, one)
	must(b, here.Close()) // ends the watch of a shared number
	must(b, there.Close())
}

// Each request for a semaphore counts once, whether it waits by a lease or in the request queue.
func TestInspectCountsOnce(t *testing.T) {
	each(t, func(b *testLock) {
		reader := b.locks()
		var futures []*actors.Future[*actors.Grant]
		for i, want := range []string{"permit!", "permit! permit!", "permit! permit! permit", "permit! permit! permit request", "permit! permit! permit request request"} {
			futures = append(futures, b.semaphore(2).Acquire(within(b), actors.WithOwner(actors.Owner(fmt.Sprint(i)))))
			q := waitQueue(b, reader, b.path, "semaphore: "+want)
			for place, p := range q.Participants {
				if p.Owner != fmt.Sprint(place) || p.Ahead != place {
					b.Errorf("%d is %v", place, p)
				}
			}
		}
		for _, f := range futures {
			unlock(b, result(b, f))
		}
		// The owners of one process wait by leases.
		s := reader.Semaphore(b.path, 1)
		futures = nil
		for i := range 3 {
			futures = append(futures, s.Acquire(within(b), actors.WithOwner(actors.Owner(fmt.Sprint(i)))))
		}
		waitQueue(b, reader, b.path, "semaphore: permit! permit permit")
		for _, f := range futures {
			unlock(b, result(b, f))
		}
	})
}

// A child of the leases that is no lease takes a permit, perhaps the only one.
func TestInspectASemaphoreWithAForeignChild(t *testing.T) {
	each(t, func(b *testLock) {
		conn, locks, reader := b.Client(b), b.locks(), b.locks()
		s := locks.Semaphore(b.path, 2)
		g := lock(b, s)
		foreign, err := conn.Create(b.path+"/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		waitQueue(b, reader, b.path, "semaphore: permit!")
		unlock(b, g)
		one := locks.Semaphore(b.path+"-2", 1)
		h := lock(b, one) // makes the directories, and keeps the server from deleting them
		second, err := conn.Create(b.path+"-2/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		unlock(b, h)
		f := one.Acquire(within(b))
		waitQueue(b, reader, b.path+"-2", "semaphore: permit")
		must(b, conn.Delete(second, -1))
		unlock(b, result(b, f))
		must(b, conn.Delete(foreign, -1))
	})
}

func TestInspectADowngrade(t *testing.T) {
	each(t, func(b *testLock) {
		rw, reader := b.rw(), b.locks()
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		next := rw.Read().Acquire(within(b))
		waitQueue(b, reader, b.path, "read-write: write! read! read")
		unlock(b, w)
		unlock(b, result(b, next))
		unlock(b, r)
	})
}

// Inspect knows the names of other libraries.
func TestInspectForeignForms(t *testing.T) {
	each(t, func(b *testLock) {
		conn, reader := b.Client(b), b.locks()
		for _, c := range []struct{ first, second, want string }{
			{foreignPrefixes["zk-recipes"], foreignPrefixes["go-zookeeper"], "mutex: exclusive! exclusive"},
			{foreignPrefixes["kazoo"], foreignPrefixes["Curator"], "mutex: exclusive! exclusive"},
			{foreignPrefixes["kazoo reader"], foreignPrefixes["kazoo"], "read-write: read! write"},
			{curatorID + "-latch-", curatorID + "-latch-", "leader latch: exclusive! exclusive"},
			{curatorID + "-north-", curatorID + "-no-north-", "custom: north no-north"},
			{foreignPrefixes["lease"], foreignPrefixes["lease"], "semaphore: permit! permit!"},
		} {
			one, two := b.foreignNode(conn, c.first), b.foreignNode(conn, c.second)
			if got := outline(inspect(b, reader, b.path)); got != c.want {
				b.Errorf("%s, %s: %s, want %s", c.first, c.second, got, c.want)
			}
			one.leave()
			two.leave()
		}
	})
}

// olderThan384 are the versions of ZooKeeper whose exists needs no right.
var olderThan384 = regexp.MustCompile(`^3\.([0-7]\.\d+|8\.[0-3]|9\.[01])$`)

// A node that the process may not read is a contender.
func TestInspectUnreadable(t *testing.T) {
	each(t, func(b *testLock) {
		secret := b.locks(func(cfg *actors.Config) {
			cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}
		})
		reader, conn := b.locks(), b.Client(b)
		g := lock(b, secret.Mutex(b.path), actors.WithOwner("me"))
		must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err := conn.SetACL(g.Node(), zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		must(b, err)
		session := g.Session()
		if !olderThan384.MatchString(b.Version(b)) {
			session = 0 // the server denies the stat, too
		}
		q := inspect(b, reader, b.path)
		if p := q.Participants[0]; outline(q) != "mutex: exclusive!" || p.Owner != "" || p.Data != nil || p.Session != session || p.Since.IsZero() != (session == 0) {
			b.Errorf("%+v", q)
		}
		all, err := reader.Mutex(b.path).Participants(within(b))
		if err != nil || len(all) != 1 || all[0].Session != session {
			b.Errorf("%v, %v", all, err)
		}
		_, err = conn.SetACL(b.path, zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		must(b, err)
		_, err = reader.Inspect(within(b), b.path)
		is(b, err, actors.ErrNoAuth)
		if q := inspect(b, secret, b.path); q.Participants[0].Owner != "me" {
			b.Errorf("%+v", q)
		}
		_, err = conn.SetACL(b.path, zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		unlock(b, g)
	})
}

func TestTextOfAParticipant(t *testing.T) {
	p := actors.Participant{Node: "/l/_c_x-lock-0000000000", Kind: "exclusive", Holds: true, Session: -1, Since: time.Unix(0, 0).UTC(),
		Host: "h", PID: 7, Program: "p", Owner: "o"}
	want := "holds (exclusive), in the queue since 1970-01-01T00:00:00Z, session 0xffffffffffffffff, owner o, host h, program p, pid 7, node /l/_c_x-lock-0000000000"
	if got := p.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.HeldSince = time.Unix(60, 0).UTC()
	contains(t, p.String(), "holds (exclusive) since 1970-01-01T00:01:00Z, in the queue since 1970-01-01T00:00:00Z, session")
	contains(t, logLine(p), "is.heldSince=1970-01-01T00:01:00.000Z")
	contains(t, logLine(p), "is.holds=true", "is.kind=exclusive", "is.session="+messages.FormatSession(-1), "is.owner=o", "is.host=h", "is.pid=7")
	p = actors.Participant{Data: []byte("10.0.0.1\n")} // of which neither session nor time is known
	if got, want := p.String(), `waits (), data "10.0.0.1\n", node `; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	q := actors.Queue{Path: "/l", Recipe: "mutex", Participants: []actors.Participant{{Holds: true}, {}, {}}}
	if got, want := q.String(), "mutex /l: 1 hold, 2 wait"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
