package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// awkwardKeys are keys that a path cannot have as they are, and their names.
var awkwardKeys = map[string]string{
	"":                        "%",
	"%":                       "%25",
	".":                       "%2E",
	"..":                      ".%2E",
	"...":                     "...",
	"/":                       "%2F",
	"2026/11/7":               "2026%2F11%2F7",
	"a b":                     "a b",
	"Zürich 東京":               "Zürich 東京",
	"\x00\n\x7f":              "%00%0A%7F",
	"\xff":                    "%FF",
	"\ufffd":                  "%EF%BF%BD",
	"a\u202eb\u2028\u200b":    "a%E2%80%AEb%E2%80%A8%E2%80%8B",
	"\U0001f512":              "%F0%9F%94%92",
	"locks":                   "lock%73",
	"leases":                  "lease%73",
	"locks/1":                 "locks%2F1",
	"zookeeper":               "zookeepe%72",
	"a-lock-0000000001":       "a-lock-000000000%31",
	"a-__held__":              "a-__held_%5F",
	"a-__lock__":              "a-__lock_%5F",
	"latch-0000000001":        "latch-0000000001",
	"0012345678":              "0012345678",
	strings.Repeat("/", 1024): strings.Repeat("%2F", 1024),
}

func TestPathOf(t *testing.T) {
	for key, name := range awkwardKeys {
		if got := actors.PathOf("/orders", key); got != "/orders/"+name {
			t.Errorf("%q: %q, want %q", key, got, name)
		}
	}
	if got := actors.PathOf("/", "1"); got != "/1" {
		t.Error(got)
	}
}

// An unacceptable directory is refused, and is not taken for another.
func TestPathOfInvalidDirectory(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		for _, dir := range []string{"", "orders", "/orders/", "/actorlock"} {
			path := actors.PathOf(dir, "a")
			_, err := locks.Mutex(path).Lock(locktest.Within(b))
			locktest.ExpectClear(b.T, err, path)
		}
	})
}

// The held marker of a key's lock is not the directory of another key's.
func TestPathOfHeldMarker(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mutex := func(key string) *actors.Mutex {
			return locks.Mutex(actors.PathOf("/keys", key), actors.LockDelay(time.Minute))
		}
		other := locktest.Lock(v, mutex("a"+queue.HeldMarkerSuffix))
		begun := time.Now()
		locktest.Unlock(v, locktest.Lock(v, mutex("a")))
		if waited := time.Since(begun); waited != 0 {
			v.Errorf("waited for %v", waited)
		}
		locktest.Unlock(v, other)
	})
}

// The path is one node in the directory, says its key, and is nothing else.
func TestPathOfAnyKey(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[%./\-_a-z0-9]{0,12}`), rapid.SampledFrom([]string{
		"-lock-", "-lease-", "__READ__", "__WRIT__", "__lock__", "__rlock__", "x-1-", "_c_", "latch-", "0000000001", "-000000001", "2147483647",
		"4f2504e0-4f89-11d3-9a0c-0305e82c3301-", "%2F", "\xff", "\u202e", "locks", "leases", queue.HeldMarkerSuffix, queue.KazooRequestQueueSuffix}))
	rapid.Check(t, func(t *rapid.T) {
		key := strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
		dir := rapid.SampledFrom([]string{"/", "/orders"}).Draw(t, "dir")
		path := actors.PathOf(dir, key)
		if err := zkpath.Check(path); err != nil {
			t.Fatal(err)
		}
		in, name := zkpath.Split(path)
		if decoded, err := url.PathUnescape(name); in != dir || name != "%" && (err != nil || decoded != key) || (name == "%") != (key == "") {
			t.Fatalf("%q becomes %q in %q, and that %q (%v)", key, name, in, decoded, err)
		}
		if queue.IsContender(name) || path == zkbridge.GenerationDirectory || name == "locks" || name == "leases" ||
			strings.HasSuffix(name, queue.HeldMarkerSuffix) || strings.HasSuffix(name, queue.KazooRequestQueueSuffix) {
			t.Fatalf("%q becomes %q", key, name)
		}
		if quoted := fmt.Sprintf("%q", name); strings.Contains(strings.ReplaceAll(strings.ReplaceAll(quoted, `\\`, ""), `\"`, ""), `\`) {
			t.Fatalf("%q becomes %s", key, quoted)
		}
	})
}

// Each key has its own lock on a server, which a reader finds as a mutex.
func TestLocksOfKeys(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, dir := b.Locks(), b.LockPath+"-keys"
		_, err := b.Client(b).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		var want []string
		var held []*actors.Grant
		for key := range awkwardKeys {
			path := actors.PathOf(dir, key)
			want, held = append(want, path), append(held, locktest.Lock(b, locks.Mutex(path)))
		}
		slices.Sort(want)
		got, err := locks.FindLocks(b.Context(), dir)
		locktest.Must(b, err)
		if !slices.Equal(got, want) {
			b.Errorf("found %q, want %q", got, want)
		}
		for _, path := range got {
			q, err := locks.Inspect(b.Context(), path)
			locktest.Must(b, err)
			if q.Recipe != "mutex" {
				b.Errorf("%q is a %s", path, q.Recipe)
			}
		}
		for _, g := range held {
			locktest.Unlock(b, g)
		}
	})
}

func TestInvalidPath(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		before := append(s.Nodes(t, "/"), "actorlock")
		for _, path := range []string{"", "/", "relative", "relative/path", "//", "//a", "/a//b", "/a/", "/.", "/..", "/a/./b",
			"/a/../b", "/a/..", "/a\x00b", "/a\nb", "/a\x1fb", "/a\x7fb", "/a\u0085b", "/a\ud7ff\ufff0b", "/a\xffb", "/actorlock/generation"} {
			mu := locks.Mutex(path)
			if mu.Path() != path {
				t.Errorf("path %q is %q", path, mu.Path())
			}
			_, err := mu.Lock(locktest.Within(t))
			f := mu.Acquire(locktest.Within(t), actors.Try())
			_, again := f.Result()
			_, pid := mu.PID()
			for _, err := range []error{err, again, pid} {
				locktest.ExpectClear(t, err, path)
			}
		}
		for _, name := range s.Nodes(t, "/") { // empty containers of other tests may have gone
			if !slices.Contains(before, name) {
				t.Errorf("/%s was created", name)
			}
		}
	})
}

// No recipe takes a path where the library keeps its own nodes.
func TestReservedPaths(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		nodes := func() []string { return slices.Sorted(slices.Values(b.Nodes(b, zkbridge.GenerationDirectory))) }
		before := nodes()
		free := locks.Mutex(b.LockPath)
		for _, path := range []string{zkbridge.GenerationDirectory, zkbridge.GenerationPath, zkbridge.GenerationPath + "/a", "/actorlock/a", "/actorlock/a/b"} {
			handles := map[string]locktest.Handle{
				"shared": locks.Semaphore(b.LockPath+"-shared", 1, actors.SharedPermits(path)), "multi": locks.MultiLock(free, locks.Mutex(path)),
			}
			for _, r := range locktest.Recipes {
				if !strings.HasPrefix(r.Name, "multi") { // whose members are at other paths
					handles[r.Name] = r.At(locks, path)
				}
			}
			for name, mu := range handles {
				_, err := mu.Lock(locktest.Within(b))
				b.Run(name, func(t *testing.T) { locktest.ExpectClear(t, err, path) })
			}
			count := locks.SharedCount(path, 1)
			_, err := count.Get(locktest.Within(b))
			locktest.ExpectClear(b.T, err, path)
			locktest.ExpectClear(b.T, count.Set(locktest.Within(b), 3), path)
			_, err = count.TrySet(locktest.Within(b), actors.Count{Version: -1}, 3)
			locktest.ExpectClear(b.T, err, path)
			_, err = locks.Mutex(path).Participants(locktest.Within(b))
			locktest.ExpectClear(b.T, err, path)
		}
		if after := nodes(); !slices.Equal(before, after) {
			b.Errorf("nodes %v, then %v", before, after)
		}
		// A path that only begins with the same letters is free.
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex("/actorlock-orders")))
	})
}
