//lint:file-ignore SA1012 nil contexts are tested, too

package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
)

// wrongCall is a wrong call, which has returned an error.
type wrongCall struct {
	err error
	// says are parts of the error's text: what is wrong, in the words of the caller, and what is
	// accepted.
	says []string
	is   error // nil for ErrInvalid
}

// wrong returns the wrong call with an error that is ErrInvalid.
func wrong(err error, says ...string) wrongCall { return wrongCall{err: err, says: says} }

// wrongUse is where the wrong calls are made.
type wrongUse struct {
	*locktest.Fixture
	locks    *actors.Locks
	mutex    *actors.Mutex // which is held by held
	held     *actors.Grant
	released *actors.Grant
	three    *actors.Semaphore // of 3, which is held
	paths    int
}

// refused returns the error of a request for a lock.
func (u *wrongUse) refused(mu locktest.Handle, options ...actors.Option) error {
	u.Helper()
	_, err := mu.Lock(locktest.Within(u), options...)
	_, again := mu.Acquire(locktest.Within(u), options...).Wait(locktest.Within(u))
	if fmt.Sprint(err) != fmt.Sprint(again) {
		u.Errorf("Lock: %v; Acquire: %v", err, again)
	}
	return err
}

// free returns a path that no other call uses.
func (u *wrongUse) free() string {
	u.paths++
	return fmt.Sprint(u.LockPath, "-free", u.paths)
}

// TestWrongCalls is a table of wrong calls. Each returns an error that has its class, and says what
// is wrong and how to mend it; no call panics, or makes a node.
func TestWrongCalls(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		u := &wrongUse{Fixture: b, locks: b.Locks()}
		u.mutex, u.three = u.locks.Mutex(b.LockPath), u.locks.Semaphore(b.LockPath+"-three", 3)
		u.released = locktest.Lock(b, u.mutex)
		locktest.Unlock(b, u.released)
		u.held = locktest.Lock(b, u.mutex)
		permit := locktest.Lock(b, u.three)
		for name, calls := range map[string]func(u *wrongUse) []wrongCall{
			"nil contexts": nilContexts, "nil options": nilOptions, "options": wrongOptions, "paths": wrongPaths, "permits": wrongPermits,
			"multi-locks": wrongMultiLocks, "local queues and lock-delays": wrongLockOptions, "custom locks": wrongRules,
			"locks in use": wrongRecipes, "revocations": wrongRevocations, "state": wrongState,
		} {
			for i, c := range calls(u) {
				class := c.is
				if class == nil {
					class = actors.ErrInvalid
				}
				if !errors.Is(c.err, class) {
					b.Errorf("%s, call %d: got %v, want %v", name, i, c.err, class)
				}
				for _, text := range c.says {
					if c.err == nil || !strings.Contains(c.err.Error(), text) {
						b.Errorf("%s, call %d: %v does not say %q", name, i, c.err, text)
					}
				}
			}
		}
		locktest.Must(b, u.held.Err())
		locktest.Unlock(b, u.held)
		locktest.Unlock(b, permit)
		for _, name := range b.Nodes(b, "/") {
			if strings.HasPrefix("/"+name, b.LockPath+"-free") {
				b.Errorf("/%s was made", name)
			}
		}
		locktest.Must(b, u.locks.Close())
		if err := locktest.ErrOf(u.mutex.Lock(locktest.Within(b))); !errors.Is(err, actors.ErrClosed) || !strings.Contains(err.Error(), "closed") {
			b.Errorf("after Close: %v", err)
		}
	})
}

// A nil context is an error that names it. Grant.Unlock releases the grant without one.
func nilContexts(u *wrongUse) (all []wrongCall) {
	count, other := u.locks.SharedCount(u.free(), 1), locktest.Lock(u, u.locks.Mutex(u.LockPath+"-other"))
	for _, err := range []error{
		locktest.ErrOf(actors.Connect(nil, u.Addr(), actors.Config{})),
		locktest.Failure(u, u.mutex.Acquire(nil)),
		locktest.ErrOf(u.mutex.Lock(nil)),
		locktest.ErrOf(u.mutex.Participants(nil)),
		locktest.ErrOf(u.mutex.RevokeHolders(nil, time.Second)),
		locktest.ErrOf(u.locks.Revoke(nil, u.held.Node(), time.Second)),
		u.held.Verify(nil),
		u.locks.VerifyToken(nil, u.held.Node(), u.held.Token()),
		locktest.ErrOf(u.locks.Multi(nil, u.held.Guard()...)),
		locktest.ErrOf(u.three.Remaining(nil)),
		locktest.ErrOf(u.locks.Election(u.free()).Leader(nil)),
		locktest.ErrOf(count.Get(nil)),
		count.Set(nil, 1),
		locktest.ErrOf(count.TrySet(nil, actors.Count{Version: -1}, 1)),
		other.Unlock(nil),
	} {
		all = append(all, wrong(err, "context is nil"))
	}
	return all
}

func nilOptions(u *wrongUse) []wrongCall {
	return []wrongCall{
		wrong(u.refused(u.mutex, actors.Try(), nil), "option 2 of 2 is nil"),
		wrong(u.refused(u.mutex, nil), "option 1 of 1 is nil"),
		wrong(u.refused(u.locks.Mutex(u.free(), actors.LocalQueue(actors.LocalQueueConfig{}), nil)), "a lock option is nil"),
		wrong(u.refused(u.locks.Semaphore(u.free(), 1, nil)), "a lock option is nil"),
	}
}

func wrongOptions(u *wrongUse) []wrongCall {
	return []wrongCall{
		wrong(u.refused(u.mutex, actors.WithTimeout(0)), "0s", "must"),
		wrong(u.refused(u.mutex, actors.WithTimeout(-time.Second)), "-1s", "must"),
		wrong(u.refused(u.mutex, actors.WithOwner("")), "owner", "must"),
	}
}

func wrongPaths(u *wrongUse) []wrongCall {
	return []wrongCall{
		wrong(u.refused(u.locks.Mutex("orders")), `lock path "orders" must begin with /`),
		wrong(u.refused(u.locks.Mutex("/locks/a/")), `path "/locks/a/" must not end with a slash`),
		wrong(u.refused(u.locks.Mutex("//")), `path "//"`),
		wrong(u.refused(u.locks.Semaphore("/", 1)), `path "/"`),
		wrong(locktest.ErrOf(u.locks.Semaphore("no", 1).PID()), `path "no"`),
		wrong(u.refused(u.locks.Semaphore(u.free(), 1, actors.SharedPermits("/count/"))), `count path "/count/" must not end with a slash`),
		wrong(u.refused(u.locks.Semaphore(u.free(), 1, actors.SharedPermits("count"))), `count path "count" must begin with /`),
		wrong(u.refused(u.locks.Semaphore(u.free(), 1, actors.SharedPermits("/"))), `count path "/"`),
		wrong(locktest.ErrOf(u.locks.SharedCount("count", 1).Get(locktest.Within(u))), `"count"`),
		wrong(u.locks.SharedCount("/", 1).Set(locktest.Within(u), 1), `count path "/"`),
	}
}

func wrongPermits(u *wrongUse) []wrongCall {
	tooMany := int64(1) << 31 // no constant: an int may have 32 bits, and then this is negative
	return []wrongCall{
		wrong(u.refused(u.three, actors.Permits(4)), "4 permits", "semaphore of 3"),
		wrong(u.refused(u.three, actors.Permits(0)), "permits 0", "from 1"),
		wrong(u.refused(u.three, actors.Permits(-1)), "permits -1", "from 1"),
		wrong(u.refused(u.locks.Semaphore(u.free(), 0)), "semaphore of 0 permits", "from 1"),
		wrong(u.refused(u.locks.Semaphore(u.free(), -7)), "semaphore of -7 permits"),
		wrong(locktest.ErrOf(u.locks.Semaphore("/no", 0).Remaining(locktest.Within(u))), "semaphore of 0 permits"),
		wrong(u.refused(u.locks.SemaphoreMutex(u.free()), actors.Permits(2)), "2 permits: a semaphore of 1 gives 1 at most"),
		wrong(u.refused(u.mutex, actors.Permits(2)), "2 permits: a mutex has no permits; leave Permits out"),
		wrong(u.refused(u.locks.RWMutex(u.free()).Read(), actors.Permits(1)), "1 permits: a read-write lock has no permits; leave Permits out"),
		wrong(u.refused(u.locks.Mutex(u.free(), actors.SharedPermits("/count"))), "SharedPermits", "a mutex has no permits"),
		wrong(u.locks.SharedCount("/count", 1).Set(locktest.Within(u), int(tooMany)), "2147483648", "2147483647"),
	}
}

func wrongMultiLocks(u *wrongUse) (all []wrongCall) {
	path := u.free()
	a := u.locks.Mutex(path)
	for text, members := range map[string][]actors.Member{
		"1 to 64":    {},
		"twice":      {a, u.locks.Mutex(path)},
		"nil":        {a, nil},
		"other":      {a, u.Locks().Mutex(u.free() + "-b")},
		"one itself": {u.locks.MultiLock(a)},
		"local":      {a, u.locks.Mutex(u.free()+"-b", actors.LocalQueue(actors.LocalQueueConfig{}))},
		"relative":   {a, u.locks.Mutex("relative")},
	} {
		all = append(all, wrong(u.refused(u.locks.MultiLock(members...)), text))
	}
	return all
}

func wrongLockOptions(u *wrongUse) (all []wrongCall) {
	for value, local := range map[string]actors.LocalQueueConfig{"-1": {Grants: -1}, "-1ns": {Time: -1}, "-1s": {Linger: -time.Second}} {
		all = append(all, wrong(u.refused(u.locks.Mutex(u.free(), actors.LocalQueue(local))), value, "must"))
	}
	all = append(all, wrong(u.refused(u.locks.SemaphoreMutex(u.free(), locktest.ShortLinger)), "semaphore"))
	for _, d := range []time.Duration{0, -time.Second, time.Minute + 1, time.Hour} {
		all = append(all, wrong(u.refused(u.locks.Mutex(u.free(), actors.LockDelay(d))), d.String()))
	}
	delay := actors.LockDelay(time.Second)
	return append(all, wrong(u.refused(u.locks.Mutex(u.free(), delay, actors.LockDelay(2*time.Second)))),
		wrong(u.refused(u.locks.RWMutex(u.free(), delay).Read())))
}

func wrongRules(u *wrongUse) (all []wrongCall) {
	for _, c := range []struct {
		name, kind string
		permits    int
		marker     string
		says       string
	}{
		{"", "north", 1, "-south-", "it must have a name"},
		{"road", "west", 1, "-south-", `kind "west": a road has north, south`},
		{"road", "north", 0, "-south-", "rule of a road: Permits 0: it must be at least 1"},
		{"road", "west", -1, "-south-", "Permits -1"},
		{"road", "north", 1, "-south\x00-", `kind "south": marker "-south\x00-" cannot be in a node's name`},
	} {
		rule := queue.Rule{Permits: c.permits, BlockedBy: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}, Markers: []string{"-north-", c.marker}}
		all = append(all, wrong(u.refused(u.locks.Custom(u.free(), c.name, rule, "north", "south").Kind(c.kind)), c.says))
	}
	return all
}

// A path is in use as one lock.
func wrongRecipes(u *wrongUse) []wrongCall {
	three := u.three.Path()
	calls := []wrongCall{
		wrong(u.refused(u.locks.Semaphore(u.LockPath, 2)), "it is in use as a mutex, and asked for as a semaphore of 2"),
		wrong(u.refused(u.locks.Semaphore(three, 4)), "in use as a semaphore of 3", "semaphore of 4"),
		wrong(u.refused(u.locks.Mutex(three)), "in use as a semaphore of 3", "asked for as a mutex"),
		wrong(u.refused(u.locks.Mutex(three+"/locks")), "in use as a semaphore of 3", "asked for as a mutex"),
		wrong(u.refused(u.locks.Mutex(u.LockPath, locktest.ShortLinger))),
		wrong(u.refused(u.locks.Mutex(u.LockPath, actors.LockDelay(time.Second)))),
	}
	for _, suffix := range []string{"/locks", "/leases"} { // another lock is at the path of one of its directories
		path := u.LockPath + suffix[:3]
		other := u.locks.Mutex(path + suffix)
		g := locktest.Lock(u, other)
		calls = append(calls, wrong(u.refused(u.locks.Semaphore(path, 1)), other.Path()))
		locktest.Unlock(u, g)
	}
	one, two := u.locks.Mutex(u.free()), u.locks.Mutex(u.free())
	locktest.Must(u, locktest.ErrOf(u.locks.MultiLock(one, two).PID()))
	sameText := u.locks.Mutex(one.Path() + " (exclusive), " + two.Path()) // as a member it is named as both are
	return append(calls, wrong(u.refused(u.locks.MultiLock(sameText)), "it is in use as a multi-lock"))
}

func wrongRevocations(u *wrongUse) (all []wrongCall) {
	for _, node := range []string{"", "/", u.LockPath, u.LockPath + "/", u.LockPath + "/unknown", "a-lock-0000000001", "/a//b-lock-0000000001"} {
		all = append(all, wrong(locktest.ErrOf(u.locks.Revoke(locktest.Within(u), node, 0)), node))
	}
	return append(all, wrong(locktest.ErrOf(u.locks.Revoke(locktest.Within(u), u.held.Node(), -time.Second)), "-1s"))
}

// Calls that would be right at another time, or of another client.
func wrongState(u *wrongUse) []wrongCall {
	conn, theirs := u.Client(u), u.LockPath+"-theirs"
	locktest.Must(u, conn.AddAuth("digest", []byte("owner:secret")))
	locktest.Must(u, locktest.ErrOf(conn.Create(theirs, nil, 0, zk.AuthACL(zk.PermAll))))
	u.Cleanups = append(u.Cleanups, func() { conn.Delete(theirs, -1) })
	return []wrongCall{
		{locktest.ErrOf(u.locks.Mutex(theirs).Lock(locktest.Within(u))), []string{"CREATE is not granted on " + theirs}, actors.ErrNoAuth},
		{u.refused(u.mutex, actors.WithTimeout(50*time.Millisecond)), []string{u.LockPath + ": after 50ms"}, actors.ErrTimedOut},
		{u.released.Unlock(locktest.Within(u)), []string{u.LockPath + " was released before"}, actors.ErrNotHeld},
	}
}
