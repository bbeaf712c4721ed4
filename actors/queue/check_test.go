package queue_test

import (
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/queue"
)

func TestCheck(t *testing.T) {
	changed := func(change func(*queue.Rule)) queue.Rule {
		r := machinetest.IntentionLocks()
		change(&r)
		return r
	}
	names := []string{"IS", "IX", "S", "X"}
	for _, c := range []struct {
		rule  queue.Rule
		kinds []string
		want  string // in the error; empty: there is none
	}{
		{machinetest.IntentionLocks(), names, ""},
		{machinetest.IndependentKinds(), []string{"one", "other"}, ""},
		{queue.ReadWrite(), []string{"write", "read"}, ""},
		{machinetest.IntentionLocks(), nil, "0 kinds: it must be 1 to 64"},
		{machinetest.IntentionLocks(), make([]string, 65), "65 kinds"},
		{machinetest.IntentionLocks(), names[:3], "4 sets in BlockedBy: it must be one for each of the 3 kinds"},
		{machinetest.IntentionLocks(), []string{"IS", "IX", "S", ""}, `kind "": number 3 must have a name`},
		{machinetest.IntentionLocks(), []string{"IS", "IX", "S", "IX"}, `kind "IX": it is there twice`},
		{changed(func(r *queue.Rule) { r.Permits = 0 }), names, "Permits 0: it must be at least 1"},
		{changed(func(r *queue.Rule) { r.Delay = true }), names, "Delay: only a mutex"},
		{changed(func(r *queue.Rule) { r.CountUnknown = true }), names, "CountUnknown: only a semaphore's"},
		{changed(func(r *queue.Rule) { r.Markers = r.Markers[1:] }), names, "3 Markers: it must be one for each"},
		{changed(func(r *queue.Rule) { r.Reenter = r.Reenter[1:] }), names, "3 sets in Reenter: it must be none, or one for each"},
		{changed(func(r *queue.Rule) { r.Reenter = nil }), names, ""},
		{changed(func(r *queue.Rule) { r.BlockedBy[2] = queue.Kinds(4) }), names, `kind "S": BlockedBy has kind 4: there are 4 kinds`},
		{changed(func(r *queue.Rule) { r.Reenter[1] = queue.Kinds(63) }), names, `kind "IX": Reenter has kind 63`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "-a/b-" }), names, `kind "IX": marker "-a/b-": it must not have a slash`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "" }), names, `marker "": it must have a letter`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "--1" }), names, `marker "--1": it must have a letter`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "-is-" }), names, `marker "-is-" ends as "-is-" does`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "more-is-" }), names, `kind "IX": marker "more-is-" ends as "-is-" does, that of "IS"`},
		{changed(func(r *queue.Rule) { r.Markers[1] = "-is" }), names, `ends as "-is" does`},
		{changed(func(r *queue.Rule) { r.Reenter[3] = queue.Kinds(0) }), names, `kind "X": Reenter has "IS": it needs Permits 1, and a "X" may block only what a "IS" blocks, and be blocked only by what blocks a "IS"`},
		{changed(func(r *queue.Rule) { r.Permits = 2 }), names, `kind "IS": Reenter has "IX": it needs Permits 1`},
	} {
		err := c.rule.Check(c.kinds)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v of %+v, which is fine", err, c.rule)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// With OwnMarkersOnly, contenders are the children that have a marker of the rule, and no others.
func TestParseWithOwnMarkersOnly(t *testing.T) {
	r := queue.Rule{OwnMarkersOnly: true, Markers: []string{"-x", "-x0", "-lock-"}}
	for _, c := range []struct {
		name string
		seq  int64
		kind queue.Kind
		ok   bool
	}{
		{"a-x0000000007", 7, 0, true},
		{"a-x00000000007", 7, 1, true},
		{"a-x-000000007", -7, 0, true},
		{"a-lock-0000000007", 7, 2, true},
		{"a-x-0000000007", 0, 0, false},
		{"a__lock__0000000007", 0, 0, false},
		{"x-123-0000000007", 0, 0, false},
		{"unrelated", 0, 0, false},
	} {
		seq, kind, ok := r.Parse(c.name)
		if ok != c.ok || seq != c.seq || kind != c.kind {
			t.Errorf("%s: %d, %d, %v; want %d, %d, %v", c.name, seq, kind, ok, c.seq, c.kind, c.ok)
		}
	}
}
