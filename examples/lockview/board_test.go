package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// fakeLocks is a source whose observers the test plays.
type fakeLocks struct{}

func (fakeLocks) FindLocks(context.Context, string) ([]string, error) { panic("not called") }

func (fakeLocks) Sessions(context.Context) <-chan zkbridge.Session { panic("not called") }

func (fakeLocks) SharedCount(string, int) *actors.SharedCount { panic("not called") }

func (fakeLocks) Partitions(string, int) *actors.Partitions { panic("not called") }

func (fakeLocks) Observe(ctx context.Context, _ string) <-chan actors.Queue {
	ended := make(chan actors.Queue)
	context.AfterFunc(ctx, func() { close(ended) })
	return ended
}

// page keeps a copy of a board, as script.js does.
type page struct {
	version uint64
	holders map[string]string
}

func (p *page) update(b *board) {
	u, _, now, _ := b.since(p.version)
	if u.Whole {
		p.holders = map[string]string{}
	}
	for _, path := range u.Gone {
		delete(p.holders, path)
	}
	for _, l := range u.Changed {
		p.holders[l.Path] = ""
		for _, c := range l.Contenders {
			p.holders[l.Path] = c.Owner
		}
	}
	p.version = now
}

// Pages have the board after any history, however far behind they were.
func TestBoardHistories(t *testing.T) {
	t.Parallel()
	seeds := uint64(200)
	if !zktest.Exhaustive() {
		seeds = 40
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		b := newBoard(fakeLocks{}, "/")
		found, want := map[string]bool{}, map[string]string{} // observed, with their holders
		pages := make([]page, 4)
		for step := range 300 {
			path := fmt.Sprintf("/%d", random.IntN(8))
			switch random.IntN(4) {
			case 0: // a lock comes or goes
				if found[path] = !found[path]; !found[path] {
					delete(found, path)
				}
			case 1:
				err := []error{nil, actors.ErrLimit}[random.IntN(2)]
				b.observe(ctx, &running, slices.Collect(maps.Keys(found)), err)
				maps.DeleteFunc(want, func(path, holder string) bool { return !found[path] && (err == nil || holder == "") })
			case 2:
				q := actors.Queue{Path: path}
				if random.IntN(2) == 0 {
					q.Participants = []actors.Participant{{Owner: fmt.Sprint(step), Holds: true}}
				}
				if b.shown[path].stop != nil {
					b.put(q)
					want[path] = ""
					for _, p := range q.Participants {
						want[path] = p.Owner
					}
				}
			case 3:
				pages[random.IntN(len(pages))].update(b)
			}
		}
		for i := range pages {
			pages[i].update(b)
			if !maps.Equal(pages[i].holders, want) {
				t.Errorf("seed %d: page %d has %v, want %v", seed, i, pages[i].holders, want)
			}
		}
		cancel()
		running.Wait()
	}
}

// The board forgets old changes. A page that was behind for too long gets the whole board.
func TestBoardForgets(t *testing.T) {
	t.Parallel()
	b := newBoard(fakeLocks{}, "/")
	var behind, fresh page
	for i := range 5 * maxChanges {
		var running sync.WaitGroup
		path := fmt.Sprintf("/%d", i)
		b.observe(t.Context(), &running, []string{path}, nil)
		b.put(actors.Queue{Path: path})
		fresh.update(b)
		if i == 0 {
			behind.update(b)
		}
	}
	want := map[string]string{fmt.Sprintf("/%d", 5*maxChanges-1): ""}
	if u, _, _, _ := b.since(behind.version); !u.Whole || len(u.Gone) > 0 {
		t.Errorf("a page that is behind gets %+v", u)
	}
	if behind.update(b); !maps.Equal(behind.holders, want) || !maps.Equal(fresh.holders, want) {
		t.Errorf("pages have %v and %v, want %v", behind.holders, fresh.holders, want)
	}
	if n := len(b.changes) + len(b.shown); n > 2*maxChanges+1 {
		t.Errorf("the board has %d entries", n)
	}
}

// The page has the locks that were found beside those that are missing, and says why.
func TestBoardIsPartial(t *testing.T) {
	t.Parallel()
	b := newBoard(fakeLocks{}, "/")
	var running sync.WaitGroup
	cause := errors.New("/large is too large")
	b.observe(t.Context(), &running, []string{"/a"}, cause)
	b.put(actors.Queue{Path: "/a"})
	var p page
	p.update(b)
	if _, s, _, _ := b.since(0); s.Skipped != cause.Error() || len(p.holders) != 1 {
		t.Errorf("%+v with %v", s, p.holders)
	}
	b.observe(t.Context(), &running, []string{"/a"}, actors.ErrSuspended)
	if _, s, _, _ := b.since(0); s.Skipped != cause.Error() {
		t.Errorf("without a connection: %+v", s)
	}
	b.observe(t.Context(), &running, []string{"/a"}, nil)
	if _, s, _, _ := b.since(0); s.Skipped != "" {
		t.Errorf("at last: %+v", s)
	}
}

// BenchmarkBoard compares the locks found with those shown, and gives a page one change.
func BenchmarkBoard(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var found []string
			for i := range n {
				found = append(found, fmt.Sprintf("/locks/%05d", i))
			}
			var running sync.WaitGroup
			board := newBoard(fakeLocks{}, "/")
			board.observe(ctx, &running, found, nil)
			for _, path := range found {
				board.put(actors.Queue{Path: path})
			}
			_, _, version, _ := board.since(0)
			for b.Loop() {
				board.observe(ctx, &running, found, nil)
				board.put(actors.Queue{Path: found[0]})
				_, _, version, _ = board.since(version)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/lock")
			cancel()
			running.Wait()
		})
	}
}

var _ source = (*actors.Locks)(nil)
