package locktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Ledger has the present holders of each lock and the greatest tokens so far, as a resource behind
// the lock has. It checks each grant: the holders together fit into the lock's room, and the token
// is greater than those of earlier grants that conflict with it.
type Ledger struct {
	t       testing.TB
	mu      sync.Mutex
	locks   map[string]*lockRecord // by path
	Deleted map[string]bool        // the nodes that another client has deleted
	Grants  map[string]int         // by path
	terms   map[string]int         // by candidate of an election
	Lost    int                    // grants that were about to be lost when they came
	unnamed int                    // owners without a name
	Errs    int
	Granted chan struct{} // receives a value at each grant, if the test waits for it
	// SessionEnded reports whether the server has ended a session at its own will, of which its
	// process may not know. It is nil where the server ends none.
	SessionEnded func(id int64) bool
}

// NewLedger returns a ledger without grants.
func NewLedger(t testing.TB) *Ledger {
	return &Ledger{t: t, locks: map[string]*lockRecord{}, Deleted: map[string]bool{}, Grants: map[string]int{}, terms: map[string]int{},
		Granted: make(chan struct{})}
}

// Share is what one holder has of a lock: weight of its room. Two shares conflict if both do not
// fit.
type Share struct {
	LockPath     string
	Room, Weight int
	Permits      bool // each request has its own, and there is no re-entry
}

const manyReaders = 1000

// Whole returns the share of a holder that excludes all others, such as a writer.
func Whole(path string) Share { return Share{LockPath: path, Room: manyReaders, Weight: manyReaders} }

// Reader returns the share of a reader.
func Reader(path string) Share { return Share{LockPath: path, Room: manyReaders, Weight: 1} }

type lockRecord struct {
	holders  []holder
	greatest map[int]holder // by weight, the holder that had the greatest token
}

// Held is a grant, or what else a test holds by.
type Held interface {
	Token() actors.Token
	Err() error // the reason of its end
}

// Connection is the locks of one connection, for a ledger that expires its sessions.
type Connection struct {
	Locks *actors.Locks

	lostBefore int64 // czxid: the nodes that were created before are of a session that has ended
}

type holder struct {
	owner      string
	grant      Held
	connection *Connection // nil where no grant ends before its holder can know
	Share
}

func (h holder) String() string {
	return fmt.Sprintf("%s: %d by %v", h.owner, h.Weight, h.grant.Token())
}

// willBeLost reports whether h's grant is about to be lost, because its session has ended or one of
// its nodes was deleted. Others may hold by now.
func (l *Ledger) willBeLost(h holder) bool {
	g, isGrant := h.grant.(*actors.Grant)
	return isGrant && (l.SessionEnded != nil && l.SessionEnded(g.Session()) ||
		h.connection != nil && (g.Token().Czxid < h.connection.lostBefore ||
			slices.ContainsFunc(g.Nodes(), func(node string) bool { return l.Deleted[node] })))
}

// removeLost removes the holders whose grants are about to be lost.
func (l *Ledger) removeLost() {
	for _, r := range l.locks {
		r.holders = slices.DeleteFunc(r.holders, l.willBeLost)
	}
}

// Enter notes that an owner holds a share of a lock. An owner without a name is one of its own.
func (l *Ledger) Enter(owner string, g Held, s Share) {
	l.t.Helper()
	l.EnterAll(nil, owner, g, s)
}

// EnterAll notes a grant of one connection's locks, by which an owner has all of the shares.
func (l *Ledger) EnterAll(c *Connection, owner string, g Held, all ...Share) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.Granted <- struct{}{}:
	default:
	}
	if owner == "" {
		l.unnamed++
		owner = fmt.Sprint("unnamed ", l.unnamed)
	}
	for _, s := range all {
		h := holder{owner, g, c, s}
		if l.willBeLost(h) {
			l.Lost++
			return
		}
		l.Grants[s.LockPath]++
		l.add(h)
	}
}

func (l *Ledger) add(h holder) {
	l.t.Helper()
	r := l.locks[h.LockPath]
	if r == nil {
		r = &lockRecord{greatest: map[int]holder{}}
		l.locks[h.LockPath] = r
	}
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.grant.Err() != nil || l.willBeLost(h) })
	r.holders = append(r.holders, h)
	used, total := map[string]int{}, 0
	for i, other := range r.holders {
		key := other.owner
		if h.Permits {
			key = fmt.Sprint(i)
		}
		total += max(0, other.Weight-used[key])
		used[key] = max(used[key], other.Weight)
	}
	if total > h.Room {
		l.errorf("%s is held by %d of %d: %v", h.LockPath, total, h.Room, r.holders)
	}
	token := h.grant.Token()
	for weight, earlier := range r.greatest {
		order := token.Compare(earlier.grant.Token())
		again := order == 0 && earlier.owner == h.owner && !h.Permits
		if order <= 0 && h.Weight+weight > h.Room && !again {
			l.errorf("%s: token %v of %s comes after %v of %s", h.LockPath, token, h.owner, earlier.grant.Token(), earlier.owner)
		}
	}
	if earlier := r.greatest[h.Weight]; earlier.grant == nil || token.Compare(earlier.grant.Token()) > 0 {
		r.greatest[h.Weight] = h
	}
}

func (l *Ledger) errorf(format string, args ...any) {
	l.t.Helper()
	if l.Errs++; l.Errs <= 10 {
		l.t.Errorf(format, args...)
	}
}

// Delete notes that another client deletes nodes.
func (l *Ledger) Delete(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, node := range nodes {
		l.Deleted[node] = true
	}
}

// IsDeleted reports whether another client has deleted the node.
func (l *Ledger) IsDeleted(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Deleted[node]
}

// Count returns the number of grants of a lock.
func (l *Ledger) Count(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Grants[path]
}

// Leave notes that a grant is about to be released.
func (l *Ledger) Leave(g Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.locks {
		r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.grant == g })
	}
}

// Election is the path in the ledger of the terms of an election.
const Election = "the election"

// heldTerm is a term, which ends with its context.
type heldTerm struct{ *actors.Term }

func (h heldTerm) Err() error { return h.Context().Err() }

// BeginTerm checks, in the body of a term, that no other term goes on, and that tokens grow. A term
// that has ended by then does not count.
func (l *Ledger) BeginTerm(candidate string, term *actors.Term) {
	l.t.Helper()
	if term.Context().Err() == nil {
		l.Enter("", heldTerm{term}, Whole(Election))
		l.CountTerm(candidate)
	}
}

// CountTerm counts a term of the candidate.
func (l *Ledger) CountTerm(candidate string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms[candidate]++
}

// WaitTerms waits, in virtual time, until each candidate has had n more terms.
func (l *Ledger) WaitTerms(n int, candidates ...string) {
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

// Expire ends the session of the connection, whose grants are about to be lost.
func (l *Ledger) Expire(b *Fixture, conn *zk.Conn, c *Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	session := c.Locks.Session()
	if session.State != messages.SessionState_CONNECTED {
		return
	}
	b.Expire(b, session.ID)
	node, err := conn.Create(b.LockPath+"-now-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	Must(b, err)
	_, stat, err := conn.Exists(node)
	Must(b, err)
	Must(b, conn.Delete(node, -1))
	c.lostBefore = stat.Czxid
	l.removeLost()
}

// DeleteNode deletes a random node, in the first directory of a random order that has one.
func (l *Ledger) DeleteNode(b *Fixture, conn *zk.Conn, directories []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range rand.Perm(len(directories)) {
		directory := b.LockPath + directories[i]
		nodes := b.Nodes(b, directory)
		if len(nodes) == 0 {
			continue
		}
		node := directory + "/" + nodes[rand.N(len(nodes))]
		if err := conn.Delete(node, -1); err == nil {
			l.Deleted[node] = true
			l.removeLost()
		}
		return
	}
}
