package api

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestInspectEachRecipe(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, reader := b.Locks(), b.Locks()
		rw := locks.RWMutex(b.LockPath + "-rw")
		for _, c := range []struct {
			first, second locktest.Handle
			want          string
		}{
			{locks.Mutex(b.LockPath + "-m"), locks.Mutex(b.LockPath + "-m"), "mutex: exclusive! exclusive"},
			{rw.Read(), rw.Write(), "read-write: read! write"},
			{rw.Read(), rw.Read(), "read-write: read! read!"},
			{rw.Write(), rw.Read(), "read-write: write! read"},
			{locks.Mutex(b.LockPath+"-d", actors.LockDelay(time.Second)), locks.Mutex(b.LockPath+"-d", actors.LockDelay(time.Second)), "mutex: exclusive! exclusive"},
			{locks.Semaphore(b.LockPath+"-s", 1), locks.Semaphore(b.LockPath+"-s", 1), "semaphore: permit! permit"},
		} {
			g := locktest.Lock(b, c.first, actors.WithOwner("first"))
			f := c.second.Acquire(locktest.Within(b))
			q := locktest.WaitQueue(b, reader, g.Path(), c.want)
			holder := q.Participants[0]
			host, _ := os.Hostname()
			if holder.Node != g.Node() || holder.Session != g.Session() || holder.Token != g.Token() || holder.Local ||
				holder.Host != host || holder.PID != os.Getpid() || holder.Program == "" || holder.Data != nil ||
				holder.Owner != "first" || time.Since(holder.Since) > zktest.TimeLimit {
				b.Errorf("%s: %+v of %v", c.want, holder, g)
			}
			if q := locktest.Inspect(b, locks, g.Path()); !q.Participants[0].Local {
				b.Errorf("not of this process: %v", q)
			}
			locktest.Unlock(b, g)
			locktest.Unlock(b, locktest.Result(b, f))
			locktest.WaitQueue(b, reader, g.Path(), ":")
		}
	})
}

func TestInspectUnused(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, conn := b.Locks(), b.Client(b)
		q := locktest.Inspect(b, locks, b.LockPath+"/none/below")
		if want := b.LockPath + "/none/below: not in use"; locktest.Outline(q) != ":" || q.String() != want {
			b.Errorf("%v, want %s", q, want)
		}
		for _, path := range []string{"relative", "/", "/actorlock/sessions", "/a//b"} {
			_, err := locks.Inspect(locktest.Within(b), path)
			locktest.Is(b, err, actors.ErrInvalid)
		}
		// Directories of locks and other nodes are no contenders.
		for _, path := range []string{b.LockPath, b.LockPath + "/locks", b.LockPath + "/leases", b.LockPath + "/lock", b.LockPath + "/W",
			b.LockPath + "/0123456789abcdef0123456789abcdef", b.LockPath + "/config"} {
			_, err := conn.Create(path, []byte("data"), 0, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
			b.Cleanups = append(b.Cleanups, func() { conn.Delete(path, -1) })
		}
		slices.Reverse(b.Cleanups)
		for _, path := range []string{b.LockPath, b.LockPath + "/config", b.LockPath + "/locks"} {
			if q := locktest.Inspect(b, locks, path); locktest.Outline(q) != ":" {
				b.Errorf("%s: %s", path, locktest.Outline(q))
			}
		}
		// Locks at the paths of a semaphore's directories.
		for _, name := range []string{"/locks", "/leases"} {
			g := locktest.Lock(b, locks.Mutex(b.LockPath+name))
			if q := locktest.Inspect(b, locks, b.LockPath); name == "/leases" && locktest.Outline(q) != ":" {
				b.Errorf("with a mutex at %s: %s", name, locktest.Outline(q))
			}
			locktest.Unlock(b, g)
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
			locktest.Each(t, func(b *locktest.Fixture) { inspectASemaphore(b, permits, options(b.LockPath)...) })
		})
	}
}

func inspectASemaphore(b *locktest.Fixture, permits int, options ...actors.LockOption) {
	here, there, reader := b.Locks(), b.Locks(), b.Locks()
	two := locktest.Lock(b, here.Semaphore(b.LockPath, 3, options...), actors.Permits(2), actors.WithOwner("two"))
	one := locktest.Lock(b, there.Semaphore(b.LockPath, 3, options...), actors.WithData([]byte("one")))
	locktest.WaitQueue(b, reader, b.LockPath, "semaphore: permit! permit! permit!")
	wait := there.Semaphore(b.LockPath, 3, options...).Acquire(locktest.Within(b), actors.Permits(2), actors.WithOwner("waits"))
	// The last three leases are of one session. The third has another transaction.
	q := locktest.WaitQueue(b, reader, b.LockPath, "semaphore: permit! permit! permit! permit permit")
	if q.Permits != permits || q.Participants[0].Permits != permits || q.Participants[1].Owner != "two" || string(q.Participants[2].Data) != "one" ||
		q.Participants[3].Owner != "waits" {
		b.Errorf("%+v", q)
	}
	if q := locktest.Inspect(b, reader, b.LockPath+"/leases"); q.Recipe != "semaphore" || len(q.Participants) != 5 {
		b.Errorf("%v of the leases", q)
	}
	locktest.Unlock(b, two)
	locktest.Unlock(b, locktest.Result(b, wait))
	locktest.Unlock(b, one)
	locktest.Must(b, here.Close()) // ends the watch of a shared number
	locktest.Must(b, there.Close())
}

// Each request for a semaphore counts once, whether it waits by a lease or in the request queue.
func TestInspectCountsOnce(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		reader := b.Locks()
		var futures []*actors.Future[*actors.Grant]
		for i, want := range []string{"permit!", "permit! permit!", "permit! permit! permit", "permit! permit! permit request", "permit! permit! permit request request"} {
			futures = append(futures, b.Semaphore(2).Acquire(locktest.Within(b), actors.WithOwner(actors.Owner(fmt.Sprint(i)))))
			q := locktest.WaitQueue(b, reader, b.LockPath, "semaphore: "+want)
			for place, p := range q.Participants {
				if p.Owner != fmt.Sprint(place) || p.Ahead != place {
					b.Errorf("%d is %v", place, p)
				}
			}
		}
		for _, f := range futures {
			locktest.Unlock(b, locktest.Result(b, f))
		}
		// The owners of one process wait by leases.
		s := reader.Semaphore(b.LockPath, 1)
		futures = nil
		for i := range 3 {
			futures = append(futures, s.Acquire(locktest.Within(b), actors.WithOwner(actors.Owner(fmt.Sprint(i)))))
		}
		locktest.WaitQueue(b, reader, b.LockPath, "semaphore: permit! permit permit")
		for _, f := range futures {
			locktest.Unlock(b, locktest.Result(b, f))
		}
	})
}

// A child of the leases that is no lease takes a permit, perhaps the only one.
func TestInspectASemaphoreWithAForeignChild(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, locks, reader := b.Client(b), b.Locks(), b.Locks()
		s := locks.Semaphore(b.LockPath, 2)
		g := locktest.Lock(b, s)
		foreign, err := conn.Create(b.LockPath+"/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		locktest.WaitQueue(b, reader, b.LockPath, "semaphore: permit!")
		locktest.Unlock(b, g)
		one := locks.Semaphore(b.LockPath+"-2", 1)
		h := locktest.Lock(b, one) // makes the directories, and keeps the server from deleting them
		second, err := conn.Create(b.LockPath+"-2/leases/foreign", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		locktest.Unlock(b, h)
		f := one.Acquire(locktest.Within(b))
		locktest.WaitQueue(b, reader, b.LockPath+"-2", "semaphore: permit")
		locktest.Must(b, conn.Delete(second, -1))
		locktest.Unlock(b, locktest.Result(b, f))
		locktest.Must(b, conn.Delete(foreign, -1))
	})
}

func TestInspectADowngrade(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, reader := b.RWMutex(), b.Locks()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		next := rw.Read().Acquire(locktest.Within(b))
		locktest.WaitQueue(b, reader, b.LockPath, "read-write: write! read! read")
		locktest.Unlock(b, w)
		locktest.Unlock(b, locktest.Result(b, next))
		locktest.Unlock(b, r)
	})
}

// Inspect knows the names of other libraries.
func TestInspectForeignForms(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, reader := b.Client(b), b.Locks()
		for _, c := range []struct{ first, second, want string }{
			{locktest.ForeignPrefixes["zk-recipes"], locktest.ForeignPrefixes["go-zookeeper"], "mutex: exclusive! exclusive"},
			{locktest.ForeignPrefixes["kazoo"], locktest.ForeignPrefixes["Curator"], "mutex: exclusive! exclusive"},
			{locktest.ForeignPrefixes["kazoo reader"], locktest.ForeignPrefixes["kazoo"], "read-write: read! write"},
			{locktest.CuratorID + "-latch-", locktest.CuratorID + "-latch-", "leader latch: exclusive! exclusive"},
			{locktest.CuratorID + "-north-", locktest.CuratorID + "-no-north-", "custom: north no-north"},
			{locktest.ForeignPrefixes["lease"], locktest.ForeignPrefixes["lease"], "semaphore: permit! permit!"},
		} {
			one, two := b.ForeignNode(conn, c.first), b.ForeignNode(conn, c.second)
			if got := locktest.Outline(locktest.Inspect(b, reader, b.LockPath)); got != c.want {
				b.Errorf("%s, %s: %s, want %s", c.first, c.second, got, c.want)
			}
			one.Leave()
			two.Leave()
		}
	})
}

// olderThan384 are the versions of ZooKeeper whose exists needs no right, and ClickHouse Keeper.
var olderThan384 = regexp.MustCompile(`keeper|^3\.([0-7]\.\d+|8\.[0-3]|9\.[01])$`)

// A node that the process may not read is a contender.
func TestInspectUnreadable(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		secret := b.Locks(func(cfg *actors.Config) {
			cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}
		})
		reader, conn := b.Locks(), b.Client(b)
		g := locktest.Lock(b, secret.Mutex(b.LockPath), actors.WithOwner("me"))
		locktest.Must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err := conn.SetACL(g.Node(), zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		locktest.Must(b, err)
		session := g.Session()
		if !olderThan384.MatchString(b.Version(b)) {
			session = 0 // the server denies the stat, too
		}
		q := locktest.Inspect(b, reader, b.LockPath)
		if p := q.Participants[0]; locktest.Outline(q) != "mutex: exclusive!" || p.Owner != "" || p.Data != nil || p.Session != session || p.Since.IsZero() != (session == 0) {
			b.Errorf("%+v", q)
		}
		all, err := reader.Mutex(b.LockPath).Participants(locktest.Within(b))
		if err != nil || len(all) != 1 || all[0].Session != session {
			b.Errorf("%v, %v", all, err)
		}
		_, err = conn.SetACL(b.LockPath, zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		locktest.Must(b, err)
		_, err = reader.Inspect(locktest.Within(b), b.LockPath)
		locktest.Is(b, err, actors.ErrNoAuth)
		if q := locktest.Inspect(b, secret, b.LockPath); q.Participants[0].Owner != "me" {
			b.Errorf("%+v", q)
		}
		_, err = conn.SetACL(b.LockPath, zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		locktest.Unlock(b, g)
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
	locktest.ExpectParts(t, p.String(), "holds (exclusive) since 1970-01-01T00:01:00Z, in the queue since 1970-01-01T00:00:00Z, session")
	locktest.ExpectParts(t, logLine(p), "is.heldSince=1970-01-01T00:01:00.000Z")
	locktest.ExpectParts(t, logLine(p), "is.holds=true", "is.kind=exclusive", "is.session="+messages.FormatSession(-1), "is.owner=o", "is.host=h", "is.pid=7")
	p = actors.Participant{Data: []byte("10.0.0.1\n")} // of which neither session nor time is known
	if got, want := p.String(), `waits (), data "10.0.0.1\n", node `; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	q := actors.Queue{Path: "/l", Recipe: "mutex", Participants: []actors.Participant{{Holds: true}, {}, {}}}
	if got, want := q.String(), "mutex /l: 1 hold, 2 wait"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
