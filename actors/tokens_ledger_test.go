package actors_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// ledger holds the present holders and the greatest tokens of all holders, as a resource behind each
// lock would remember them. It checks each grant: with the others it has to fit into the lock's room, and its
// token is greater than those of earlier grants that it conflicts with.
type ledger struct {
	t        testing.TB
	mu       sync.Mutex
	books    map[string]*book // by path
	gone     map[string]bool  // nodes that another client has deleted
	grants   map[string]int   // by path
	lost     int
	nameless int
	errs     int
	news     chan struct{} // of each grant, if the test waits for it
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, books: map[string]*book{}, gone: map[string]bool{}, grants: map[string]int{}, news: make(chan struct{})}
}

// share is what one holder has of a lock: weight of its room. Two shares conflict if both do not fit.
type share struct {
	path         string
	room, weight int
	permits      bool // each request has its own; there is no re-entry
}

const manyReaders = 1000

// whole is the share of a holder that excludes all others, and that of a writer; reader is that of a reader.
func whole(path string) share  { return share{path: path, room: manyReaders, weight: manyReaders} }
func reader(path string) share { return share{path: path, room: manyReaders, weight: 1} }

type book struct {
	holders []holder
	newest  map[int]holder // those with the greatest token, by weight
}

// hold is a grant, or what a test has for as long as it holds.
type hold interface {
	Token() actors.Token
	Err() error // why it is over
}

type holder struct {
	owner string
	hold
	processLocks *processLocks // nil where no grant is lost before its holder can know
	share
}

func (h holder) String() string { return fmt.Sprintf("%s: %d by %v", h.owner, h.weight, h.Token()) }

// dead reports whether the grant of such a lock is about to be lost, by what was done to its nodes
// or to its session. Others may hold by now.
func (l *ledger) dead(h holder) bool {
	g, isGrant := h.hold.(*actors.Grant)
	return isGrant && h.processLocks != nil && (g.Token().Czxid < h.processLocks.deadBefore ||
		slices.ContainsFunc(g.Nodes(), func(node string) bool { return l.gone[node] }))
}

// bury forgets the holders whose grants are about to be lost.
func (l *ledger) bury() {
	for _, b := range l.books {
		b.holders = slices.DeleteFunc(b.holders, l.dead)
	}
}

// enter notes that an owner holds a share of a lock. An owner without a name is one of its own.
func (l *ledger) enter(owner string, h hold, s share) { l.enterAll(nil, owner, h, s) }

// enterAll notes a grant of one connection's locks, by which an owner has all of the shares.
func (l *ledger) enterAll(s *processLocks, owner string, h hold, all ...share) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	if owner == "" {
		l.nameless++
		owner = fmt.Sprint("nameless ", l.nameless)
	}
	for _, a := range all {
		now := holder{owner, h, s, a}
		if l.dead(now) {
			l.lost++
			return
		}
		l.grants[a.path]++
		l.note(now)
	}
}

func (l *ledger) note(now holder) {
	l.t.Helper()
	b := l.books[now.path]
	if b == nil {
		b = &book{newest: map[int]holder{}}
		l.books[now.path] = b
	}
	b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.Err() != nil }) // its owner has been told
	b.holders = append(b.holders, now)
	used, total := map[string]int{}, 0
	for i, h := range b.holders {
		key := h.owner
		if now.permits {
			key = fmt.Sprint(i)
		}
		total += max(0, h.weight-used[key])
		used[key] = max(used[key], h.weight)
	}
	if total > now.room {
		l.errorf("%s is held by %d of %d: %v", now.path, total, now.room, b.holders)
	}
	for weight, newest := range b.newest {
		c := now.Token().Compare(newest.Token())
		again := c == 0 && newest.owner == now.owner && !now.permits
		if c <= 0 && now.weight+weight > now.room && !again {
			l.errorf("%s: token %v of %s comes after %v of %s", now.path, now.Token(), now.owner, newest.Token(), newest.owner)
		}
	}
	if n := b.newest[now.weight]; n.hold == nil || now.Token().Compare(n.Token()) > 0 {
		b.newest[now.weight] = now
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
		l.gone[node] = true
	}
}

func (l *ledger) deleted(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone[node]
}

// count returns how often the lock was held so far.
func (l *ledger) count(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grants[path]
}

func (l *ledger) leave(over hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.books {
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.hold == over })
	}
}
