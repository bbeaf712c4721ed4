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

// only returns the plan with the entries of a list such as "1 4 7-9".
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
	return p.filter(func(e entry) bool { return keep[e.id] })
}

// filter returns the plan with the entries for which keep reports true.
func (p *plan) filter(keep func(entry) bool) *plan {
	part := *p
	part.entries = nil
	for _, e := range p.entries {
		if keep(e) {
			part.entries = append(part.entries, e)
		}
	}
	return &part
}

// list returns the entries as a list for only.
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

// shrinker searches for a smaller plan that fails in the same way.
type shrinker struct {
	t         *testing.T
	best      *plan
	violation string
	until     time.Time
	tries     int
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f.]*[a-zµ]*`)

// violationClass returns the text of a violation without its numbers.
func violationClass(violation string) string {
	text := digits.ReplaceAllString(violation, "#")
	return text[:min(len(text), 120)]
}

// try makes the plan the best one if it fails as the first plan did.
func (s *shrinker) try(p *plan) bool {
	if time.Now().After(s.until) || len(p.entries) == len(s.best.entries) && p.processes == s.best.processes &&
		p.servers == s.best.servers && p.foreignClients == s.best.foreignClients && p.election == s.best.election && p.length == s.best.length {
		return false
	}
	s.tries++
	sim := simulate(s.t, p)
	if !sim.failed() || violationClass(sim.violations[0]) != s.violation {
		return false
	}
	s.best = p
	return true
}

// shrink returns a plan that fails like p, with fewer processes, faults and operations.
func shrink(t *testing.T, p *plan, sim *simulation, limit time.Duration) *plan {
	s := &shrinker{t: t, best: p, violation: violationClass(sim.violations[0]), until: time.Now().Add(limit)}
	if end := sim.failedAt + time.Second; end < p.length {
		shorter := p.filter(func(e entry) bool { return e.at < end })
		shorter.length = end
		s.try(shorter)
	}
	for _, without := range []func(*plan){
		func(p *plan) { p.foreignClients = 0 },
		func(p *plan) { p.election = false },
		func(p *plan) {
			*p = *p.filter(func(e entry) bool { return !slices.Contains(serverFaults, e.name) })
			p.servers = 1
		},
	} {
		part := *s.best
		without(&part)
		s.try(&part)
	}
	for slot := range p.processes {
		s.try(s.best.filter(func(e entry) bool { return e.slot != slot }))
	}
	for _, kind := range slices.Concat(faults, serverFaults, streamFaults, []string{"blink", "op watch", "op unreadable"}, groupOperations, operations) {
		s.try(s.best.filter(func(e entry) bool { return e.name != kind }))
	}
	for size := len(s.best.entries) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.best.entries); {
			out := map[int]bool{}
			for _, e := range s.best.entries[from:min(from+size, len(s.best.entries))] {
				out[e.id] = true
			}
			if !s.try(s.best.filter(func(e entry) bool { return !out[e.id] })) {
				from += size
			}
		}
	}
	fewer := *s.best
	fewer.processes = 1 + p.lockServers // a violation may need no entry, as in an election
	for _, e := range s.best.entries {
		fewer.processes = max(fewer.processes, e.slot+1)
	}
	s.try(&fewer)
	t.Logf("%d runs: %d entries of %d are left", s.tries, len(s.best.entries), len(p.entries))
	return s.best
}

// asTest returns the code of a test that runs the plan.
func (p *plan) asTest() string {
	return fmt.Sprintf(`
func TestSeed%d(t *testing.T) {
	p := drawPlan(%d, %d, %q).only(%q)
	p.length, p.processes, p.servers, p.foreignClients, p.election = %d, %d, %d, %d, %t
	report(t, simulate(t, p))
}
`, p.seed, p.seed, p.drawnLength, p.kind, p.list(), p.length, p.processes, p.servers, p.foreignClients, p.election)
}

// A plan without some of its entries has the other entries unchanged.
func TestPartOfAPlan(t *testing.T) {
	p := newPlan(3, time.Minute)
	part := p.only("1 4 7-9")
	if part.list() != "1 4 7-9" || len(part.entries) != 5 || part.entries[1] != p.entries[4] {
		t.Errorf("got %q: %v", part.list(), part.entries)
	}
}

// failAtThirdGrant stands for a defect in tests of the simulation itself.
func failAtThirdGrant(sim *simulation) {
	if sim.grants >= 3 && !sim.failed() {
		sim.fail(sim.now(), "planted")
	}
}

// A plan that shrank for failAtThirdGrant has one server, no fault, and at most four operations.
// Three grants may need fewer, since a program may acquire again by itself.
func TestShrink(t *testing.T) {
	p := newPlan(5, 20*time.Second)
	p.foreignClients, p.election = 0, false // grants of these clients count, too
	p.defect = failAtThirdGrant
	sim := simulate(t, p)
	if !sim.failed() {
		t.Fatal("the plan does not fail")
	}
	small := shrink(t, p, sim, 30*time.Second)
	if n := len(small.entries); n < 1 || n > 4 || slices.ContainsFunc(small.entries, entry.isFault) || small.servers != 1 {
		t.Errorf("%d entries are left: %v", n, small)
	}
}
