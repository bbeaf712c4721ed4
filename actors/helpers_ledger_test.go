package actors_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ledger has the present holders of each lock and the greatest tokens so far, as a resource behind
// the lock has. It checks each grant: the holders together fit into the lock's room, and the token
// is greater than those of earlier grants that conflict with it.
type ledger struct {
	t       testing.TB
	mu      sync.Mutex
	locks   map[string]*lockRecord // by path
	deleted map[string]bool        // the nodes that another client has deleted
	grants  map[string]int         // by path
	terms   map[string]int         // by candidate of an election
	lost    int                    // grants that were about to be lost when they came
	unnamed int                    // owners without a name
	errs    int
	granted chan struct{} // receives a value at each grant, if the test waits for it
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, locks: map[string]*lockRecord{}, deleted: map[string]bool{}, grants: map[string]int{}, terms: map[string]int{},
		granted: make(chan struct{})}
}

// share is what one holder has of a lock: weight of its room. Two shares conflict if both do not
// fit.
type share struct {
	path         string
	room, weight int
	permits      bool // each request has its own, and there is no re-entry
}

const manyReaders = 1000

// whole returns the share of a holder that excludes all others, such as a writer; reader returns
// that of a reader.
func whole(path string) share  { return share{path: path, room: manyReaders, weight: manyReaders} }
func reader(path string) share { return share{path: path, room: manyReaders, weight: 1} }

type lockRecord struct {
	holders  []holder
	greatest map[int]holder // by weight, the holder that had the greatest token
}

// anyGrant is a grant, or what else a test holds by.
type anyGrant interface {
	Token() actors.Token
	Err() error // the reason of its end
}

type holder struct {
	owner        string
	grant        anyGrant
	processLocks *processLocks // nil where no grant ends before its holder can know
	share
}

func (h holder) String() string {
	return fmt.Sprintf("%s: %d by %v", h.owner, h.weight, h.grant.Token())
}

// willBeLost reports whether h's grant is about to be lost, because its session has ended or one of
// its nodes was deleted. Others may hold by now.
func (l *ledger) willBeLost(h holder) bool {
	g, isGrant := h.grant.(*actors.Grant)
	return isGrant && h.processLocks != nil && (g.Token().Czxid < h.processLocks.lostBefore ||
		slices.ContainsFunc(g.Nodes(), func(node string) bool { return l.deleted[node] }))
}

// removeLost removes the holders whose grants are about to be lost.
func (l *ledger) removeLost() {
	for _, r := range l.locks {
		r.holders = slices.DeleteFunc(r.holders, l.willBeLost)
	}
}

// enter notes that an owner holds a share of a lock. An owner without a name is one of its own.
func (l *ledger) enter(owner string, g anyGrant, s share) {
	l.t.Helper()
	l.enterAll(nil, owner, g, s)
}

// enterAll notes a grant of one connection's locks, by which an owner has all of the shares.
func (l *ledger) enterAll(p *processLocks, owner string, g anyGrant, all ...share) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.granted <- struct{}{}:
	default:
	}
	if owner == "" {
		l.unnamed++
		owner = fmt.Sprint("unnamed ", l.unnamed)
	}
	for _, s := range all {
		h := holder{owner, g, p, s}
		if l.willBeLost(h) {
			l.lost++
			return
		}
		l.grants[s.path]++
		l.add(h)
	}
}

func (l *ledger) add(h holder) {
	l.t.Helper()
	r := l.locks[h.path]
	if r == nil {
		r = &lockRecord{greatest: map[int]holder{}}
		l.locks[h.path] = r
	}
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.grant.Err() != nil }) // its owner knows of the end
	r.holders = append(r.holders, h)
	used, total := map[string]int{}, 0
	for i, other := range r.holders {
		key := other.owner
		if h.permits {
			key = fmt.Sprint(i)
		}
		total += max(0, other.weight-used[key])
		used[key] = max(used[key], other.weight)
	}
	if total > h.room {
		l.errorf("%s is held by %d of %d: %v", h.path, total, h.room, r.holders)
	}
	token := h.grant.Token()
	for weight, earlier := range r.greatest {
		order := token.Compare(earlier.grant.Token())
		again := order == 0 && earlier.owner == h.owner && !h.permits
		if order <= 0 && h.weight+weight > h.room && !again {
			l.errorf("%s: token %v of %s comes after %v of %s", h.path, token, h.owner, earlier.grant.Token(), earlier.owner)
		}
	}
	if earlier := r.greatest[h.weight]; earlier.grant == nil || token.Compare(earlier.grant.Token()) > 0 {
		r.greatest[h.weight] = h
	}
}

func (l *ledger) errorf(format string, args ...any) {
	l.t.Helper()
	if l.errs++; l.errs <= 10 {
		l.t.Errorf(format, args...)
	}
}

// delete notes that another client deletes nodes.
func (l *ledger) delete(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, node := range nodes {
		l.deleted[node] = true
	}
}

func (l *ledger) isDeleted(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleted[node]
}

// count returns the number of grants of a lock.
func (l *ledger) count(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grants[path]
}

// leave notes that a grant is about to be released.
func (l *ledger) leave(g anyGrant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.locks {
		r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.grant == g })
	}
}

const election = "the election"

// heldTerm is a term, which ends with its context.
type heldTerm struct{ *actors.Term }

func (h heldTerm) Err() error { return h.Context().Err() }

// beginTerm checks, in the body of a term, that no other term goes on, and that tokens grow. A term
// that has ended by then does not count.
func (l *ledger) beginTerm(candidate string, term *actors.Term) {
	l.t.Helper()
	if term.Context().Err() == nil {
		l.enter("", heldTerm{term}, whole(election))
		l.countTerm(candidate)
	}
}

func (l *ledger) countTerm(candidate string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms[candidate]++
}

// waitTerms waits, in virtual time, until each candidate has had n more terms.
func (l *ledger) waitTerms(n int, candidates ...string) {
	l.t.Helper()
	l.mu.Lock()
	before := maps.Clone(l.terms)
	l.mu.Unlock()
	zktest.Eventually(l.t, time.Hour, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !slices.ContainsFunc(candidates, func(c string) bool { return l.terms[c] < before[c]+n })
	}, "%d terms of each candidate", n)
}
