package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// only keeps those entries of a plan that are in a list like "1 4 7-9".
func (p *plan) only(list string) *plan {
	keep := map[int]bool{}
	for item := range strings.FieldsSeq(list) {
		first, last, found := strings.Cut(item, "-")
		from, _ := strconv.Atoi(first)
		to := from
		if found {
			to, _ = strconv.Atoi(last)
		}
		for i := from; i <= to; i++ {
			keep[i] = true
		}
	}
	return p.with(func(e entry) bool { return keep[e.id] })
}

// with is the plan with those entries only that keep reports true for.
func (p *plan) with(keep func(entry) bool) *plan {
	part := *p
	part.entries = nil
	for _, e := range p.entries {
		if keep(e) {
			part.entries = append(part.entries, e)
		}
	}
	return &part
}

// list is what only takes.
func (p *plan) list() string {
	var ids []int
	for _, e := range p.entries {
		ids = append(ids, e.id)
	}
	slices.Sort(ids)
	var items []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if j > i {
			items = append(items, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		} else {
			items = append(items, strconv.Itoa(ids[i]))
		}
		i = j + 1
	}
	return strings.Join(items, " ")
}

// shrinker looks for a smaller plan that fails in the same way.
type shrinker struct {
	t     *testing.T
	best  *plan
	class string
	until time.Time
	tries int
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f.]*[a-zµ]*`)

// class is what a violation is about, without its numbers.
func class(violation string) string {
	text := digits.ReplaceAllString(violation, "#")
	return text[:min(len(text), 120)]
}

// try takes the plan for the best if it fails as the first one did.
func (s *shrinker) try(p *plan) bool {
	if time.Now().After(s.until) || len(p.entries) == len(s.best.entries) && p.processes == s.best.processes &&
		p.servers == s.best.servers && p.foreign == s.best.foreign && p.election == s.best.election && p.length == s.best.length {
		return false
	}
	s.tries++
	w := simulate(s.t, p)
	if !w.failed() || class(w.violations[0]) != s.class {
		return false
	}
	s.best = p
	return true
}

// shrink returns a plan that fails like p, of fewer processes, faults and operations.
func shrink(t *testing.T, p *plan, w *world, limit time.Duration) *plan {
	s := &shrinker{t: t, best: p, class: class(w.violations[0]), until: time.Now().Add(limit)}
	if end := w.failedAt + time.Second; end < p.length {
		shorter := p.with(func(e entry) bool { return e.at < end })
		shorter.length = end
		s.try(shorter)
	}
	for _, without := range []func(*plan){
		func(p *plan) { p.foreign = 0 },
		func(p *plan) { p.election = false },
		func(p *plan) {
			*p = *p.with(func(e entry) bool { return !slices.Contains(serverFaults, e.what) })
			p.servers = 1
		},
	} {
		part := *s.best
		without(&part)
		s.try(&part)
	}
	for slot := range p.processes {
		s.try(s.best.with(func(e entry) bool { return e.slot != slot }))
	}
	for _, kind := range slices.Concat(faultKinds, serverFaults, opKinds) {
		s.try(s.best.with(func(e entry) bool { return e.what != kind }))
	}
	for size := len(s.best.entries) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.best.entries); {
			out := map[int]bool{}
			for _, e := range s.best.entries[from:min(from+size, len(s.best.entries))] {
				out[e.id] = true
			}
			if !s.try(s.best.with(func(e entry) bool { return !out[e.id] })) {
				from += size
			}
		}
	}
	fewer := *s.best
	fewer.processes = 1 // what is found may need no entry, as in an election
	for _, e := range s.best.entries {
		fewer.processes = max(fewer.processes, e.slot+1)
	}
	s.try(&fewer)
	t.Logf("%d runs: %d entries of %d are left", s.tries, len(s.best.entries), len(p.entries))
	return s.best
}

// asTest is the plan as a test.
func (p *plan) asTest() string {
	return fmt.Sprintf(`
func TestSeed%d(t *testing.T) {
	p := newPlan(%d, %d).only(%q)
	p.length, p.processes, p.servers, p.foreign, p.election = %d, %d, %d, %d, %t
	report(t, simulate(t, p))
}
`, p.seed, p.seed, p.drawn, p.list(), p.length, p.processes, p.servers, p.foreign, p.election)
}

// A plan without some entries has the others as they were.
func TestPartOfAPlan(t *testing.T) {
	p := newPlan(3, time.Minute)
	part := p.only("1 4 7-9")
	if part.list() != "1 4 7-9" || len(part.entries) != 5 || part.entries[1] != p.entries[4] {
		t.Errorf("got %q: %v", part.list(), part.entries)
	}
}

// A checker that takes the third grant for wrong stands for a defect: what is left of the plan
// has to have three operations at most, or four, no fault and one server. A program may ask again by itself.
func TestShrink(t *testing.T) {
	p := newPlan(5, 20*time.Second)
	p.foreign, p.election = 0, false // their grants count as well
	p.defect = func(w *world) {
		if w.grants >= 3 && !w.failed() {
			w.fail(w.now(), "planted")
		}
	}
	w := simulate(t, p)
	if !w.failed() {
		t.Fatal("the plan does not fail")
	}
	small := shrink(t, p, w, 30*time.Second)
	if n := len(small.entries); n < 1 || n > 4 || slices.ContainsFunc(small.entries, entry.isFault) || small.servers != 1 {
		t.Errorf("%d entries are left: %v", n, small)
	}
}
