package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = zktest.TimeLimit

func acquire(t *testing.T, l *Lock) {
	t.Helper()
	if held, err := l.Acquire(timeLimit); err != nil || !held {
		t.Fatalf("acquire: %v, %v", held, err)
	}
}

func try(t *testing.T, l *Lock, want bool) {
	t.Helper()
	if held, err := l.TryAcquire(); err != nil || held != want {
		t.Fatalf("try: %v, %v, want %v", held, err, want)
	}
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// contend has all locks, and a function of the test, contend for one resource.
func contend(t *testing.T, rounds, limit int, locks []*Lock, ours func(*Resource) error) *Resource {
	t.Helper()
	r := NewResource(t)
	var done []<-chan error
	for i, l := range locks {
		done = append(done, l.Contend(r, fmt.Sprint("theirs-", i), rounds))
	}
	var errs []error
	if ours != nil {
		errs = append(errs, ours(r))
	}
	for i, ch := range done {
		errs = append(errs, <-ch)
		if n := r.Rounds(fmt.Sprint("theirs-", i)); n != rounds {
			errs = append(errs, fmt.Errorf("lock %d has done %d of %d rounds", i, n, rounds))
		}
	}
	if err := errors.Join(append(errs, r.Verify(limit))...); err != nil {
		t.Error(err)
	}
	return r
}

// goLock returns a contender with go-zookeeper's own lock, which has Curator's format.
func goLock(t *testing.T, s *zktest.Server, path string, rounds int) func(*Resource) error {
	l := zk.NewLock(s.Client(t), path, zk.WorldACL(zk.PermAll))
	return func(r *Resource) error {
		return r.Contend("ours", Exclusive, rounds, func() (func() error, error) { return l.Unlock, l.Lock() })
	}
}

func TestCurator(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		a, b := Curator(t, s.Addr()), Curator(t, s.Addr())
		t.Run("mutex", func(t *testing.T) { curatorMutex(t, s, a, b) })
		t.Run("read and write", func(t *testing.T) { curatorReadWrite(t, s, a, b) })
		t.Run("semaphore", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 2, []*Lock{a.Semaphore(path, 2), a.Semaphore(path, 2), b.Semaphore(path, 2)}, nil)
			l := a.Semaphore(path, 2)
			acquire(t, l)
			acquire(t, l)
			try(t, b.Semaphore(path, 2), false)
			if node, err := l.Node(); err != nil || !strings.HasPrefix(node, path+"/leases/") {
				t.Errorf("node %q, %v", node, err)
			}
			release(t, l)
			release(t, l)
		})
		t.Run("semaphore mutex", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 0, []*Lock{a.SemaphoreMutex(path), a.SemaphoreMutex(path), b.SemaphoreMutex(path)}, nil)
		})
		t.Run("multi lock", func(t *testing.T) {
			x, y := s.Path(t), s.Path(t)
			contend(t, 15, 0, []*Lock{a.MultiLock(x, y), b.MultiLock(x, y), b.Mutex(y)}, nil)
		})
		t.Run("revocation", func(t *testing.T) {
			l := a.Mutex(s.Path(t))
			revoked, err := l.MakeRevocable()
			if err != nil {
				t.Fatal(err)
			}
			acquire(t, l)
			node, err := l.Node()
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Revoke(node); err != nil {
				t.Fatal(err)
			}
			if e := <-revoked; e.Kind != "REVOKE" {
				t.Errorf("event %v", e)
			}
			release(t, l)
		})
	})
}

func curatorMutex(t *testing.T, s *zktest.Server, a, b *CuratorClient) {
	path := s.Path(t)
	contend(t, 15, 0, []*Lock{a.Mutex(path), a.Mutex(path), b.Mutex(path)}, goLock(t, s, path, 15))

	l := a.Mutex(path)
	acquire(t, l)
	acquire(t, l) // once more by the same thread
	node, err := l.Node()
	if nodes := s.Nodes(t, path); err != nil || len(nodes) != 1 || node != path+"/"+nodes[0] {
		t.Errorf("node %q, %v; in the directory %v", node, err, nodes)
	}
	if list, err := l.Participants(); err != nil || len(list) != 1 || list[0] != node {
		t.Errorf("participants %v, %v", list, err)
	}
	other := b.Mutex(path)
	try(t, other, false)
	waiting := other.Begin(timeLimit)
	release(t, l)
	release(t, l)
	if r := <-waiting; r.Err != nil || !r.Held {
		t.Errorf("after the release: %v", r)
	}
	release(t, other)
	if err := other.Release(); err == nil {
		t.Error("released twice")
	}
}

func curatorReadWrite(t *testing.T, s *zktest.Server, a, b *CuratorClient) {
	path := s.Path(t)
	contend(t, 15, 0, []*Lock{a.ReadLock(path), b.ReadLock(path), a.WriteLock(path), b.WriteLock(path)}, nil)

	read, write := a.ReadWriteLock(path)
	acquire(t, write)
	acquire(t, read) // the writer may read
	release(t, write)
	try(t, b.WriteLock(path), false)
	reader := b.ReadLock(path)
	try(t, reader, true)
	release(t, reader)
	release(t, read)
}

func TestKazoo(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		a, b := Kazoo(t, s.Addr()), Kazoo(t, s.Addr())
		t.Run("lock", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 0, []*Lock{a.Lock(path), a.Lock(path), b.Lock(path)}, nil)
			l := a.Lock(path)
			acquire(t, l)
			node, err := l.Node()
			if nodes := s.Nodes(t, path); err != nil || len(nodes) != 1 || node != path+"/"+nodes[0] {
				t.Errorf("node %q, %v; in the directory %v", node, err, nodes)
			}
			if list, err := l.Participants(); err != nil || len(list) != 1 || list[0] != l.name {
				t.Errorf("participants %v, %v", list, err)
			}
			other := b.Lock(path)
			try(t, other, false)
			if held, err := other.Acquire(50 * time.Millisecond); err != nil || held {
				t.Errorf("acquire: %v, %v", held, err)
			}
			release(t, l)
			acquire(t, other)
			release(t, other)
		})
		t.Run("with the lock of go-zookeeper", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 0, []*Lock{a.Lock(path, "-lock-"), b.Lock(path, "-lock-")}, goLock(t, s, path, 15))
		})
		t.Run("read and write", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 0, []*Lock{a.WriteLock(path), b.WriteLock(path)}, nil)
			read, other, write := a.ReadLock(path), b.ReadLock(path), b.WriteLock(path)
			acquire(t, read)
			try(t, other, true)
			try(t, write, false)
			release(t, other)
			waiting := write.Begin(timeLimit)
			release(t, read)
			if r := <-waiting; r.Err != nil || !r.Held {
				t.Errorf("after the readers: %v", r)
			}
			waiting = read.Begin(timeLimit)
			release(t, write)
			if r := <-waiting; r.Err != nil || !r.Held {
				t.Errorf("after the writer: %v", r)
			}
			release(t, read)
		})
		t.Run("semaphore", func(t *testing.T) {
			path := s.Path(t)
			contend(t, 15, 2, []*Lock{a.Semaphore(path, 2), a.Semaphore(path, 2), b.Semaphore(path, 2)}, nil)
		})
	})
}

// Verify finds violations by contenders of each language: without a lock they are inside together.
func TestContendersWithoutALock(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Embedded(t)
	none := func() (func() error, error) { return func() error { return nil }, nil }
	for name, start := range map[string]func(*testing.T) *Peer{
		"curator": func(t *testing.T) *Peer { return Curator(t, s.Addr()).Peer },
		"kazoo":   func(t *testing.T) *Peer { return Kazoo(t, s.Addr()).Peer },
	} {
		t.Run(name, func(t *testing.T) {
			r, p := NewResource(t), start(t)
			theirs := p.lock("none").Contend(r, "theirs", 1000)
			ours := r.Contend("ours", Exclusive, 1000, none)
			if err := errors.Join(ours, <-theirs); err != nil {
				t.Fatal(err)
			}
			if err := r.Verify(0); err == nil || !strings.Contains(err.Error(), "enters") {
				t.Errorf("no violation was found: %v", err)
			}
		})
	}
}

// The next process gets the lock of another one whose session expires, or which is killed.
func TestExpiredAndKilled(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	first, second := Curator(t, s.Addr()), Kazoo(t, s.Addr())
	l, next := first.Mutex(path), second.Lock(path, "-lock-")
	acquire(t, l)
	waiting := next.Begin(timeLimit)
	s.Expire(t, first.SessionID())
	if r := <-waiting; r.Err != nil || !r.Held {
		t.Errorf("after the expiry: %v", r)
	}
	lost := false
	for e := range first.States() {
		lost = lost || e.Kind == "LOST"
		if lost && e.Kind == "RECONNECTED" { // before that, Curator repeats a request only so often
			break
		}
	}
	release(t, next)

	// The server may delete the container that Curator has made, and a lock of kazoo makes its directory only once.
	next = second.Lock(path, "-lock-")
	acquire(t, next)
	id := second.SessionID()
	second.Kill()
	if err := next.Release(); !errors.Is(err, errEnded) {
		t.Errorf("release in a dead process: %v", err)
	}
	s.Expire(t, id)
	third := first.Mutex(path)
	acquire(t, third)
	release(t, third)
}

func TestErrorsComeBack(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Embedded(t)
	for name, start := range map[string]func(*testing.T) *Peer{
		"curator": func(t *testing.T) *Peer { return Curator(t, s.Addr()).Peer },
		"kazoo":   func(t *testing.T) *Peer { return Kazoo(t, s.Addr()).Peer },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			if _, err := p.call("x", "x", "no-such-kind"); err == nil || !strings.Contains(err.Error(), "no-such-kind") {
				t.Errorf("an unknown object: %v", err)
			}
			if _, err := p.call("x", "x", "mutex", "/a\nb"); err == nil || !strings.Contains(err.Error(), "line break") {
				t.Errorf("a path with a line break: %v", err)
			}
			l := p.lock("none")
			if err := (<-l.ask("no-such-verb")).err; err == nil || !strings.Contains(err.Error(), "no-such-verb") {
				t.Errorf("an unknown verb: %v", err)
			}
		})
	}
}
