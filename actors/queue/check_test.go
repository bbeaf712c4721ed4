package queue

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	change := func(f func(*Rule)) Rule {
		r := intention()
		f(&r)
		return r
	}
	names := []string{"IS", "IX", "S", "X"}
	for _, c := range []struct {
		rule  Rule
		kinds []string
		want  string // in the error; empty: there is none
	}{
		{intention(), names, ""},
		{ways(), []string{"one", "other"}, ""},
		{ReadWrite(), []string{"write", "read"}, ""},
		{intention(), nil, "0 kinds: it must be 1 to 64"},
		{intention(), make([]string, 65), "65 kinds"},
		{intention(), names[:3], "4 sets in BlockedBy: it must be one for each of the 3 kinds"},
		{intention(), []string{"IS", "IX", "S", ""}, `kind "": number 3 must have a name`},
		{intention(), []string{"IS", "IX", "S", "IX"}, `kind "IX": it is there twice`},
		{change(func(r *Rule) { r.Permits = 0 }), names, "Permits 0: it must be at least 1"},
		{change(func(r *Rule) { r.Delay = true }), names, "Delay: only a mutex"},
		{change(func(r *Rule) { r.CountUnknown = true }), names, "CountUnknown: only a semaphore's"},
		{change(func(r *Rule) { r.Markers = r.Markers[1:] }), names, "3 Markers: it must be one for each"},
		{change(func(r *Rule) { r.Reenter = r.Reenter[1:] }), names, "3 sets in Reenter: it must be none, or one for each"},
		{change(func(r *Rule) { r.Reenter = nil }), names, ""},
		{change(func(r *Rule) { r.BlockedBy[2] = Kinds(4) }), names, `kind "S": BlockedBy has kind 4: there are 4 kinds`},
		{change(func(r *Rule) { r.Reenter[1] = Kinds(63) }), names, `kind "IX": Reenter has kind 63`},
		{change(func(r *Rule) { r.Markers[1] = "-a/b-" }), names, `kind "IX": marker "-a/b-": it must not have a slash`},
		{change(func(r *Rule) { r.Markers[1] = "" }), names, `marker "": it must have a letter`},
		{change(func(r *Rule) { r.Markers[1] = "--1" }), names, `marker "--1": it must have a letter`},
		{change(func(r *Rule) { r.Markers[1] = "-is-" }), names, `marker "-is-" ends as "-is-" does`},
		{change(func(r *Rule) { r.Markers[1] = "more-is-" }), names, `kind "IX": marker "more-is-" ends as "-is-" does, that of "IS"`},
		{change(func(r *Rule) { r.Markers[1] = "-is" }), names, `ends as "-is" does`},
		{change(func(r *Rule) { r.Reenter[3] = Kinds(0) }), names, `kind "X": Reenter has "IS": it needs Permits 1, and a "X" may block only what a "IS" blocks, and be blocked only by what blocks a "IS"`},
		{change(func(r *Rule) { r.Permits = 2 }), names, `kind "IS": Reenter has "IX": it needs Permits 1`},
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

// A private rule takes for contenders what has its own markers, and nothing else.
func TestParseOfAPrivateRule(t *testing.T) {
	r := Rule{OwnMarkersOnly: true, Markers: []string{"-x", "-x0", "-lock-"}}
	for _, c := range []struct {
		name string
		seq  int64
		kind Kind
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

// ways is a rule of independent kinds: each excludes its own only.
func ways() Rule {
	return Rule{Permits: 1, OwnMarkersOnly: true, BlockedBy: []KindSet{Kinds(0), Kinds(1)}, Markers: []string{"-a-", "-b-"}}
}

// intention is the rule of the locks of that name, on a whole and its parts: IS, IX, S, X.
func intention() Rule {
	const is, ix, s, x = 0, 1, 2, 3
	return Rule{
		Permits: 1, OwnMarkersOnly: true,
		BlockedBy: []KindSet{is: Kinds(x), ix: Kinds(s, x), s: Kinds(ix, x), x: Kinds(is, ix, s, x)},
		Markers:   []string{"-is-", "-ix-", "-s-", "-x-"},
		Reenter:   []KindSet{is: Kinds(is, ix, s, x), ix: Kinds(ix, x), s: Kinds(s, x), x: Kinds(x)},
	}
}
