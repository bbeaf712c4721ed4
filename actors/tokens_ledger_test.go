package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/actorlock/actorlock/actors"
)

// ledger holds the present holders and the greatest tokens of all holders, as a resource behind each
// lock would remember them.
type ledger struct {
	mu     sync.Mutex
	books  map[string]*book // by path
	gone   map[string]bool  // nodes that another client has deleted
	grants map[string]int   // by recipe
	lost   int
	errs   []string
	news   chan struct{} // of each grant, if the test waits for it
}

func newLedger() *ledger {
	return &ledger{books: map[string]*book{}, gone: map[string]bool{}, grants: map[string]int{}, news: make(chan struct{})}
}

type book struct {
	holders []holder
	newest  map[int]holder // those with the greatest token, by weight
}

type holder struct {
	owner        string
	grant        *actors.Grant
	processLocks *processLocks
	access
}

// dead reports whether the grant of such a lock is about to be lost, by what was done to its nodes
// or to its session. Others may hold by now.
func (l *ledger) dead(s *processLocks, g *actors.Grant) bool {
	return g.Token().Czxid < s.deadBefore || slices.ContainsFunc(g.Nodes(), func(node string) bool { return l.gone[node] })
}

// bury forgets the holders whose grants are about to be lost.
func (l *ledger) bury() {
	for _, b := range l.books {
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return l.dead(h.processLocks, h.grant) })
	}
}

// enter notes a grant, by which owner has all of the accesses.
func (l *ledger) enter(s *processLocks, owner string, g *actors.Grant, all ...access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	if l.dead(s, g) {
		l.lost++
		return
	}
	for _, a := range all {
		l.grants[strings.TrimPrefix(a.Path(), s.path+"-")]++
	}
	for _, a := range all {
		b := l.books[a.Path()]
		if b == nil {
			b = &book{newest: map[int]holder{}}
			l.books[a.Path()] = b
		}
		used := map[string]int{}
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.grant.Err() != nil }) // its owner has been told
		b.holders = append(b.holders, holder{owner, g, s, a})
		for i, h := range b.holders {
			key := h.owner
			if a.permits {
				key = fmt.Sprint(i)
			}
			used[key] = max(used[key], h.weight)
		}
		total := 0
		for _, n := range used {
			total += n
		}
		if total > a.room {
			l.errs = append(l.errs, fmt.Sprintf("%s is held by %d of %d: %v", a.Path(), total, a.room, b.holders))
		}
		for weight, newest := range b.newest {
			c := g.Token().Compare(newest.grant.Token())
			again := c == 0 && newest.owner == owner && !a.permits
			if c <= 0 && a.conflicts(weight) && !again {
				l.errs = append(l.errs, fmt.Sprintf("%s: token %v of %s for %s comes after %v of %s", a.Path(), g.Token(), owner, g.Path(), newest.grant.Token(), newest.owner))
			}
		}
		if n := b.newest[a.weight]; n.grant == nil || g.Token().Compare(n.grant.Token()) > 0 {
			b.newest[a.weight] = holder{owner, g, s, a}
		}
	}
}

func (l *ledger) leave(g *actors.Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.books {
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.grant == g })
	}
}
