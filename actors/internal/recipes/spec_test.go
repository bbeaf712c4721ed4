package recipes

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

var times = rapid.Int64Range(1, int64(maxRemote))

// drawLock draws a lock that a handle other than that of a multi-lock may have.
func drawLock(t *rapid.T) *manager.Recipe {
	r := rapid.SampledFrom([]*manager.Recipe{Mutex, ReadWrite, LeaderLatch, nil}).Draw(t, "recipe")
	var options []func(*manager.Recipe) error
	switch {
	case r == nil:
		r = Semaphore(rapid.IntRange(1, math.MaxInt32).Draw(t, "permits"), "")
		if rapid.Bool().Draw(t, "shared") {
			options = append(options, SharedPermits(rapid.SampledFrom([]string{"/count", "/a/b"}).Draw(t, "path")))
		}
	case r == Mutex && rapid.Bool().Draw(t, "delayed"):
		options = append(options, Delay(time.Duration(rapid.Int64Range(1, int64(maxDelay)).Draw(t, "delay"))))
	}
	if r.Rule.Permits == 1 && !r.Rule.OwnMarkersOnly && rapid.Bool().Draw(t, "queue") {
		options = append(options, LocalQueue(manager.LocalQueueConfig{Grants: rapid.IntRange(0, math.MaxInt).Draw(t, "grants"),
			Time: time.Duration(times.Draw(t, "time")), Linger: time.Duration(times.Draw(t, "linger"))}))
	}
	if rapid.Bool().Draw(t, "require") {
		options = append([]func(*manager.Recipe) error{RequireDirectory}, options...)
	}
	made, err := With(r, options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func drawRecipe(t *rapid.T) *manager.Recipe {
	if !rapid.Bool().Draw(t, "multi-lock") {
		return drawLock(t)
	}
	var members []manager.Member
	for i := range rapid.IntRange(1, 5).Draw(t, "members") {
		m := manager.Member{Path: fmt.Sprintf("/%d", i), Recipe: drawLock(t)}
		for m.Recipe.LocalQueue != nil {
			m.Recipe = drawLock(t)
		}
		m.Kind = queue.Kind(rapid.IntRange(0, len(m.Recipe.Kinds)-1).Draw(t, "kind"))
		members = append(members, m)
	}
	r, err := MultiLock(members)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// comparable returns the recipe without what cannot be compared: the functions, whose addresses
// stand for them.
func comparable(r *manager.Recipe) any {
	plain := *r
	plain.NewActor, plain.Members = nil, nil
	all := []any{plain, reflect.ValueOf(r.NewActor).Pointer()}
	for _, d := range r.Members {
		all = append(all, d.Path, d.Kind, comparable(d.Recipe))
	}
	return all
}

// A lock server makes the recipe that the handle of the client has.
func TestSpecOfARecipeGivesThatRecipe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecipe(t)
		s, err := SpecOf(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromSpec(s)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(comparable(r), comparable(again)) {
			t.Fatalf("%+v became %+v", comparable(r), comparable(again))
		}
	})
}

// spoil sets a field of an acceptable specification to a value that may be unacceptable there.
func spoil(t *rapid.T, s *messages.LockSpec) {
	number := rapid.SampledFrom([]int64{0, 1, 5, -1, int64(time.Minute), int64(time.Minute) + 1, math.MaxInt64, math.MinInt64}).Draw(t, "number")
	path := rapid.SampledFrom([]string{"", "/a", "/0", "/", "a", "/a/", "/zookeeper", "/\x00", "/0 (exclusive), /1"}).Draw(t, "path")
	if n := len(s.Members); n > 0 && rapid.Bool().Draw(t, "of a member") {
		m := s.Members[rapid.IntRange(0, n-1).Draw(t, "member")]
		switch rapid.IntRange(0, 4).Draw(t, "field") {
		case 0:
			m.Kind = uint32(number)
		case 1:
			m.Path = path
		case 2:
			m.Lock = nil
		case 3:
			m.Lock = proto.CloneOf(s)
		default:
			if m.Lock != nil {
				spoil(t, m.Lock)
			}
		}
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "field") {
	case 0:
		s.Recipe = messages.Recipe(number)
	case 1:
		s.Permits = uint32(number)
	case 2:
		s.CountPath = path
	case 3:
		s.DelayNanos = number
	case 4:
		s.LocalQueue = &messages.LocalQueue{Grants: number, LingerNanos: number}
	default:
		s.Members = append(s.Members, &messages.Member{Path: path, Lock: &messages.LockSpec{}})
	}
}

// Whatever a client sends, it is refused as invalid, or is what a handle has: then it says all of
// the recipe, but for the defaults of a local queue.
func TestAnySpecIsRefusedOrThatOfAHandle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := SpecOf(drawRecipe(t))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "spoilt") {
			spoil(t, s)
		}
		r, err := FromSpec(s)
		if err != nil {
			if !errors.Is(err, messages.Reason_INVALID) || r != nil {
				t.Fatal(r, err)
			}
			return
		}
		again, err := SpecOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if s.LocalQueue != nil {
			s.LocalQueue = again.LocalQueue
		}
		if !proto.Equal(s, again) {
			t.Fatalf("%v became %v", s, again)
		}
	})
}

func TestUnacceptableSpecs(t *testing.T) {
	mutex := &messages.LockSpec{}
	multi := func(members ...*messages.Member) *messages.LockSpec {
		return &messages.LockSpec{Recipe: messages.Recipe_MULTI_LOCK, Members: members}
	}
	for text, s := range map[string]*messages.LockSpec{
		"the lock is missing":              nil,
		"a mutex has no permits":           {Permits: 1},
		"a mutex has no members":           {Members: []*messages.Member{{Path: "/a", Lock: mutex}}},
		"recipe 17":                        {Recipe: 17},
		"semaphore of 0 permits":           {Recipe: messages.Recipe_SEMAPHORE},
		"only a mutex can have one":        {Recipe: messages.Recipe_READ_WRITE, DelayNanos: 1},
		"LocalQueue for a leader latch":    {Recipe: messages.Recipe_LEADER_LATCH, LocalQueue: &messages.LocalQueue{}},
		"multi-lock of 0 members":          multi(),
		"multi-lock of 65 members":         multi(make([]*messages.Member, 65)...),
		"/a is given twice":                multi(&messages.Member{Path: "/a", Lock: mutex}, &messages.Member{Path: "/a", Lock: mutex}),
		"/a: kind 2":                       multi(&messages.Member{Path: "/a", Lock: mutex, Kind: 2}),
		"recipe MULTI_LOCK":                multi(&messages.Member{Path: "/a", Lock: multi()}),
		"a multi-lock has no permits":      {Recipe: messages.Recipe_MULTI_LOCK, Permits: 1},
		"Linger 1m0.000000001s":            {LocalQueue: &messages.LocalQueue{LingerNanos: int64(time.Minute) + 1}},
		"Time 1h0m0s":                      {LocalQueue: &messages.LocalQueue{TimeNanos: int64(time.Hour)}},
		"LocalQueue for a multi-lock":      {Recipe: messages.Recipe_MULTI_LOCK, LocalQueue: &messages.LocalQueue{}},
		"has a local queue, which keeps":   multi(&messages.Member{Path: "/a", Lock: &messages.LockSpec{LocalQueue: &messages.LocalQueue{}}}),
		`SharedPermits("/a"): a mutex has`: {CountPath: "/a"},
	} {
		if _, err := FromSpec(s); !errors.Is(err, messages.Reason_INVALID) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, not %q", s, err, text)
		}
	}
	if _, err := SpecOf(Custom("mine", queue.Mutex(), []string{"exclusive"})); !errors.Is(err, messages.Reason_INVALID) {
		t.Error(err)
	}
}
