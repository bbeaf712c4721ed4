package writer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIsWorthAnother(t *testing.T) {
	inFlight := func(sizes ...int) (f flight) {
		for _, n := range sizes {
			f.add(&batch{writes: make([]reply.Sender, n), ops: make([]zkconn.Op, 2*n)})
		}
		return f
	}
	most := bounds{few: 3, operations: 2 * maxOps}
	for _, c := range []struct {
		sizes           []int
		enough, overdue int // how many are worth another batch, also if they are overdue; 0: none
	}{
		{nil, 1, 1},
		{[]int{1}, 1, 1},
		{[]int{1, 2}, 3, 1},
		{[]int{1, 2, 1}, 0, 1},
		{[]int{maxOps - 1}, maxOps / 2, 1},
		{[]int{maxOps}, maxOps / 2, maxOps / 2},
		{[]int{maxOps / 2, 1, maxOps / 2}, 0, 0},
		{slices.Repeat([]int{1}, MaxInFlight), 0, 0},
	} {
		f := inFlight(c.sizes...)
		for _, want := range []int{c.enough, c.overdue} {
			for n := range maxOps {
				if f.isWorthAnother(n, most) != (want > 0 && n >= want) {
					t.Errorf("beside %v, overdue %v: wrong for %d", c.sizes, f.overdue, n)
				}
			}
			f.overdue = true
		}
	}
}

// timerEpoch is an Epoch of which only the timers and the client are used.
type timerEpoch struct {
	Epoch
	timers []func()
	client silentClient
}

func (e *timerEpoch) Client() zkconn.Client { return &e.client }

func (e *timerEpoch) AfterFunc(_ time.Duration, f func()) (stop func()) {
	e.timers = append(e.timers, f)
	return func() {}
}

// silentClient counts what is sent, and answers nothing.
type silentClient struct {
	zkconn.Client
	sent int
}

func (c *silentClient) Multi([]zkconn.Op, zkconn.Callback[[]zk.MultiResponse]) { c.sent++ }
func (c *silentClient) ReadDirectories(reads []zkconn.DirectoryRead, _ func()) { c.sent += len(reads) }

// However many locks are in use, and however slow the server is, it has fewer requests of a writer
// than those at which it stops reading.
func TestRequestsInFlight(t *testing.T) {
	const serverStopsReadingAt, locks = 1000, 4000
	e := &timerEpoch{}
	w := New(e, Dependencies{Settings: &zkconn.Settings{Clock: zkconn.NewClock(nil)}, OnBatch: func(int) {}})
	w.SessionNode, w.existing = "/actorlock/sessions/1", maxExisting
	for i := range locks {
		for _, known := range []bool{true, false} {
			directory := fmt.Sprintf("/locks/%d-%v", i, known)
			w.Create(NewCreate(reply.To{}, &messages.Create{Directory: directory, Prefix: "n-", DirectoryExists: known}, nil).Group())
		}
	}
	w.Flush()
	for fired := 0; fired < len(e.timers); fired++ {
		e.timers[fired]()
		w.Flush()
	}
	if n := e.client.sent; n < serverStopsReadingAt/2 || n >= serverStopsReadingAt {
		t.Errorf("%d requests are in flight", n)
	}
}

// However many nodes of one lock wait, those of another lock go by the next batch; each directory's go in
// their order, and none is lost. The nodes of a request of many permits wait as few groups.
func TestSharesOfDirectories(t *testing.T) {
	for _, size := range []int{1, 64} {
		t.Run(fmt.Sprintf("groups of %d", size), func(t *testing.T) { testShares(t, size) })
	}
}

func testShares(t *testing.T, size int) {
	const many, each, others = 6016, 500, 5
	w := New(&timerEpoch{}, Dependencies{Settings: &zkconn.Settings{}, OnBatch: func(int) {}})
	w.SessionNode = "/actorlock/sessions/1"
	var parts []*Create
	create := func(directory string, i, size int) {
		c := NewCreate(reply.To{ID: uint64(i)}, &messages.Create{Directory: directory, Prefix: "n-", DirectoryExists: true}, nil)
		if parts = append(parts, c); len(parts) < size {
			return
		}
		w.Create(NewAtomicCreate(parts))
		parts = nil
	}
	for i := range many {
		create("/locks/hostile", i, size)
		if i%each == 0 {
			w.Release(NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks/hostile", Node: "n-1"}))
		}
	}
	for i := range others {
		for n := range 3 {
			create(fmt.Sprintf("/locks/%d", i), n, 1)
		}
	}
	last, total := map[string]int{}, 0
	for first := true; ; first = false {
		b := w.buildBatch()
		if b == nil {
			break
		}
		for _, write := range b.writes {
			total++
			create, is := write.(*Create)
			if !is {
				continue
			}
			directory := create.msg.GetDirectory()
			if n := int(create.ID); n < last[directory] {
				t.Fatalf("%s: %d comes behind %d", directory, n, last[directory])
			}
			last[directory] = int(create.ID)
		}
		if first && len(last) != others+1 {
			t.Errorf("the first batch has creates in %d directories of %d", len(last), others+1)
		}
		if len(b.writes)+size < maxOps && len(w.queue) > 0 {
			t.Errorf("a batch of %d writes though %d groups wait", len(b.writes), len(w.queue))
		}
	}
	if want := many + many/each + 1 + 3*others; total != want {
		t.Errorf("%d writes of %d", total, want)
	}
}

// A create that waits for the answer to another one sets a timer once, however long that takes.
func TestTimersOfTheBlocked(t *testing.T) {
	e := &timerEpoch{}
	w := New(e, Dependencies{Settings: &zkconn.Settings{}})
	w.SessionNode = "/actorlock/sessions/1"
	create := func() {
		w.Create(NewCreate(reply.To{}, &messages.Create{Directory: "/locks/a", Prefix: "n-", DirectorySeen: true}, nil).Group())
	}
	create()
	w.inFlight.add(w.buildBatch())
	create()
	w.Flush()
	for fired := 0; fired < len(e.timers) && fired < 3; fired++ {
		e.timers[fired]()
		w.Flush()
	}
	if len(e.timers) != 1 || !w.inFlight.overdue {
		t.Errorf("%d timers, overdue: %v", len(e.timers), w.inFlight.overdue)
	}
}

// A create whose directory may be missing holds back later creates of that directory until it is
// answered. It does not if its batch deletes a node of the directory first: a directory with a node
// exists. Locks that many requests share create and delete in each batch, and did a fifth less
// while each batch waited for the one before.
func TestDeleteShowsDirectory(t *testing.T) {
	unknown := NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks/a", Node: "n-1"})
	unknown.unknownSince = 1
	for _, test := range []struct {
		name    string
		release *NodeRelease
		waits   bool
	}{
		{"no delete", nil, true},
		{"delete in the directory", NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks/a", Node: "n-1"}), false},
		{"delete in a directory below", NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks/a/b", Node: "n-1"}), true},
		{"delete of the directory's name", NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks", Node: "a"}), true},
		{"delete in a directory with a longer name", NewRelease(reply.To{}, &messages.ReleaseNode{Directory: "/locks/ab", Node: "n-1"}), true},
		{"delete whose outcome is unknown", unknown, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := New(nil, Dependencies{Settings: &zkconn.Settings{}})
			w.SessionNode = "/actorlock/sessions/1"
			create := func() {
				w.Create(NewCreate(reply.To{}, &messages.Create{Directory: "/locks/a", Prefix: "n-", DirectorySeen: true}, nil).Group())
			}
			if test.release != nil {
				w.Release(test.release)
			}
			create()
			w.inFlight.add(w.buildBatch())
			create()
			if waits := w.buildBatch() == nil; waits != test.waits {
				t.Errorf("a later create waits: %v", waits)
			}
		})
	}
}

func TestFindSequential(t *testing.T) {
	children := []string{"a-", "a--2147483647", "a-0000000002x", "a-10000000001", "a-b-0000000001", "x"}
	for prefix, want := range map[string]string{"a-b-": "a-b-0000000001", "a-": "a--2147483647", "y": ""} {
		if got := findSequential(children, prefix); got != want {
			t.Errorf("%s: %q, not %q", prefix, got, want)
		}
	}
}

// A batch may hold creates between which others came that another failed batch has put back.
func TestRequeueKeepsArrival(t *testing.T) {
	for _, test := range []struct{ queue, groups, want []uint64 }{
		{[]uint64{2, 3}, []uint64{1, 4}, []uint64{1, 2, 3, 4}},
		{[]uint64{4, 0, 5}, []uint64{1, 2}, []uint64{1, 2, 4, 0, 5}},
		{[]uint64{1, 3, 0}, []uint64{0, 2, 0, 4}, []uint64{0, 1, 2, 0, 3, 4, 0}}, // 0: a release
		{[]uint64{5, 6, 1}, []uint64{2, 3}, []uint64{2, 3, 5, 6, 1}},             // 1 was sent again behind later ones
		{nil, []uint64{0, 1}, []uint64{0, 1}},
	} {
		list := func(arrivals []uint64) (groups []*Group) {
			for _, n := range arrivals {
				groups = append(groups, &Group{arrival: n})
			}
			return groups
		}
		w := Writer{queue: list(test.queue)}
		w.requeue(list(test.groups))
		var got []uint64
		for _, g := range w.queue {
			got = append(got, g.arrival)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v put back into %v: %v, want %v", test.groups, test.queue, got, test.want)
		}
	}
}

func TestWithoutTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "groups")
		queue, want, end := make([]*Group, n), []*Group(nil), 0
		for i := range queue {
			if rapid.Bool().Draw(t, "taken") {
				end = i + 1
			} else {
				queue[i] = &Group{arrival: uint64(i)}
				want = append(want, queue[i])
			}
		}
		before := slices.Clone(queue)
		if got := withoutTaken(queue, end); !slices.Equal(got, want) {
			t.Errorf("%v without those taken: %v, want %v", before, got, want)
		}
	})
}
