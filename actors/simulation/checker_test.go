package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// checker checks that no two grants contradict each other. The caller reports each grant and its
// end, with the time.
type checker struct {
	specs            map[string]*spec
	held             []*heldGrant
	recentGrants     map[string][]*heldGrant               // grants of the last recentTime, by path
	lastGrant        map[string]time.Duration              // when a lock was granted last, by path
	deletedNodeEnded map[string]time.Duration              // when the lock may have heard of the end of a grant whose node was already deleted, by process and path
	uncleanEnd       map[string]time.Duration              // when the last holder ended without a release, by path
	greatest         map[string]map[tokenUse]greatestToken // the greatest token so far, by path
	ownerEnded       map[string]time.Duration              // when an owner's last request ended, or the latest time at which it ends
	violations       []string
	failedAt         time.Duration // time of the first violation
}

// tokenUse is a process's use of a lock: its weight or kind.
type tokenUse struct {
	process string
	key     int
}

// greatestToken is the greatest token of some grants, with the owner of that grant.
type greatestToken struct {
	actors.Token
	owner string
	lost  bool // the servers have lost the transaction of the token since
}

// spec is the rule of one lock. Two uses conflict if excludes says so, or without excludes if their
// weights together exceed the capacity.
type spec struct {
	capacity    int
	maxCapacity int           // for a capacity that changes: its greatest value
	permits     bool          // each grant has its own permits; there is no re-entry
	excludes    [][]bool      // by kind; nil: capacity decides
	lockDelay   time.Duration // how long the lock stays closed after a holder that did not release it
}

// use is how a grant uses one lock.
type use struct {
	path   string
	kind   int
	weight int
}

// key returns what decides whether the use conflicts with another one.
func (s *spec) key(u use) int {
	if s.excludes != nil {
		return u.kind
	}
	return u.weight
}

func (s *spec) conflict(a, b int) bool {
	if s.excludes != nil {
		return s.excludes[a][b]
	}
	return a+b > max(s.capacity, s.maxCapacity)
}

// heldGrant is a grant whose holder may believe in it.
type heldGrant struct {
	id              int
	owner           string // unique in all processes
	token           actors.Token
	uses            []use
	nodes           []string
	session         int64
	foreign         bool                 // of another library, whose grants have no tokens
	unaffectedSince func() time.Duration // since when no fault delays what the holder learns
	invalidated     bool                 // its node was deleted by force, or its session ended by force
	noticeBy        time.Duration        // for an invalidated grant: when the holder must know

	process             string
	grantedAt           time.Duration
	nodeDeletedAt       time.Duration // when its node was deleted before the grant came; 0: the node existed
	minDelay            time.Duration // the least time until the process learns of a change
	predecessorOutlived bool          // its node was deleted before the process can have learned that all contenders ahead had left
	maxAnswerDelay      time.Duration // how long an answer may take to reach the process; 0: not known
	endDelay            time.Duration // how long it may take until the lock hears of the grant's end: a lock server has the lock
}

func newChecker(specs map[string]*spec) *checker {
	return &checker{specs: specs, greatest: map[string]map[tokenUse]greatestToken{}, uncleanEnd: map[string]time.Duration{}, ownerEnded: map[string]time.Duration{},
		recentGrants: map[string][]*heldGrant{}, lastGrant: map[string]time.Duration{}, deletedNodeEnded: map[string]time.Duration{}}
}

func (c *checker) fail(now time.Duration, format string, args ...any) {
	if len(c.violations) == 0 {
		c.failedAt = now
	}
	c.violations = append(c.violations, fmt.Sprintf("at %v: ", now)+fmt.Sprintf(format, args...))
}

// granted adds a grant, and checks it against the others.
func (c *checker) granted(now time.Duration, h *heldGrant) {
	h.grantedAt = now
	for _, u := range h.uses {
		c.checkNodeGone(now, h, u)
		c.checkDelay(now, h, u)
		c.checkOverlap(now, h, u)
		c.checkToken(now, h, u)
	}
	for _, u := range h.uses {
		c.lastGrant[u.path] = now
	}
	c.held = append(c.held, h)
}

// recentTime is how long a grant counts as recent.
const recentTime = 10 * time.Second

// checkNodeGone checks that a contender whose node is gone is not granted after another process has
// passed it. The other process could hold only when all contenders ahead of this one had left. If
// this process has learned of the last departure, its proof of its own node must be newer than that
// departure. Such a proof takes no longer than any other answer. There are two exceptions. A holder
// of the same process that had lost its node counts as no departure. And if the contenders ahead
// left so early that the process may have learned of it before its own node was deleted, the proof
// may be from the time in between: the grant then is like one whose node is deleted.
func (c *checker) checkNodeGone(now time.Duration, h *heldGrant, u use) {
	s := c.specs[u.path]
	recent := slices.DeleteFunc(c.recentGrants[u.path], func(g *heldGrant) bool { return g.grantedAt < now-recentTime })
	c.recentGrants[u.path] = append(recent, h)
	if h.nodeDeletedAt == 0 || !h.predecessorOutlived || h.maxAnswerDelay == 0 || now <= h.nodeDeletedAt+h.maxAnswerDelay {
		return
	}
	for _, g := range recent {
		if g.process == h.process || g.grantedAt <= h.nodeDeletedAt || g.invalidated || !s.conflict(s.key(g.uses[0]), s.key(u)) || len(g.uses) > 1 {
			continue
		}
		endedAt, was := c.deletedNodeEnded[h.process+u.path]
		holds := slices.ContainsFunc(c.held, func(l *heldGrant) bool { return l.process == h.process && l.invalidated && l.uses[0].path == u.path })
		if !holds && !(was && endedAt >= g.grantedAt) {
			c.fail(now, "%s: grant %d of %s is by a node that was deleted at %v, and grant %d of %s was made since", u.path, h.id, h.owner, h.nodeDeletedAt, g.id, g.owner)
		}
	}
}

// checkDelay checks that a lock with a lock-delay was closed for long enough.
func (c *checker) checkDelay(now time.Duration, h *heldGrant, u use) {
	since, unclean := c.uncleanEnd[u.path]
	if unclean && !h.invalidated && now < since+c.specs[u.path].lockDelay {
		c.fail(now, "%s: grant %d of %s comes %v after a holder that did not release", u.path, h.id, h.owner, now-since)
	}
	delete(c.uncleanEnd, u.path)
}

// lost ends a grant that its holder did not release.
func (c *checker) lost(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id && !h.invalidated {
			c.endUncleanly(now, h)
		}
	}
	c.ended(now, id)
}

// sessionLost notes that a holder has lost its session, and finishes its work. If the servers ended
// the session earlier, by force, the work may overlap with the next grant.
func (c *checker) sessionLost(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id {
			if !h.invalidated {
				c.endUncleanly(now, h)
			}
			h.unaffectedSince = func() time.Duration { return never }
		}
	}
}

func (c *checker) endUncleanly(now time.Duration, h *heldGrant) {
	for _, u := range h.uses {
		if delay := c.specs[u.path].lockDelay; delay > 0 && !c.isReentered(h) {
			c.uncleanEnd[u.path] = now
			if c.ownerEnded[h.owner] > now { // a request that was dropped ends after it, and cleanly
				c.uncleanEnd[u.path] = now - delay
			}
		}
	}
}

// isReentered reports whether the same owner has another grant by the same node.
func (c *checker) isReentered(h *heldGrant) bool {
	return slices.ContainsFunc(c.held, func(other *heldGrant) bool { return other != h && c.isReentry(h, other, h.uses[0].path) })
}

// isReentry reports whether h and other are grants of one owner by one node.
func (c *checker) isReentry(h, other *heldGrant, path string) bool {
	return !c.specs[path].permits && h.owner == other.owner && h.token == other.token
}

func (c *checker) checkOverlap(now time.Duration, h *heldGrant, u use) {
	if h.invalidated {
		return
	}
	s := c.specs[u.path]
	total, by := u.weight, []string{}
	shared := map[string]int{h.owner + h.token.String(): u.weight}
	for _, other := range c.held {
		for _, o := range other.uses {
			if o.path != u.path || other.invalidated {
				continue
			}
			switch {
			case s.excludes != nil:
				if s.excludes[u.kind][o.kind] && !c.isReentry(h, other, u.path) {
					c.fail(now, "%s: grant %d of %s for kind %d beside grant %d of %s for kind %d", u.path, h.id, h.owner, u.kind, other.id, other.owner, o.kind)
				}
				continue
			case s.permits:
				total += o.weight
			case c.isReentry(h, other, u.path):
				key := h.owner + h.token.String()
				if more := o.weight - shared[key]; more > 0 {
					shared[key] = o.weight
					total += more
				}
			default:
				key := other.owner + other.token.String()
				if more := o.weight - shared[key]; more > 0 {
					shared[key] = o.weight
					total += more
				}
			}
			by = append(by, fmt.Sprintf("%d of %s", other.id, other.owner))
		}
	}
	if s.excludes == nil && total > s.capacity {
		c.fail(now, "%s: with grant %d of %s the grants use %d of %d; the others are %v", u.path, h.id, h.owner, total, s.capacity, by)
	}
}

func (c *checker) checkToken(now time.Duration, h *heldGrant, u use) {
	if h.foreign || h.invalidated { // another process may hold already, with a greater token
		return
	}
	greatest := c.greatest[u.path]
	if greatest == nil {
		greatest = map[tokenUse]greatestToken{}
		c.greatest[u.path] = greatest
	}
	s := c.specs[u.path]
	mine := tokenUse{h.process, s.key(u)}
	for use, last := range greatest {
		reentry := !s.permits && h.owner == last.owner && h.token == last.Token // even if the other grant has ended
		unseen := last.lost && use.process != h.process                         // nothing tells this process of that token
		if !reentry && !unseen && s.conflict(mine.key, use.key) && h.token.Compare(last.Token) <= 0 {
			c.fail(now, "%s: grant %d of %s has token %v, not greater than %v of an earlier grant", u.path, h.id, h.owner, h.token, last.Token)
		}
	}
	if h.token.Compare(greatest[mine].Token) > 0 {
		greatest[mine] = greatestToken{h.token, h.owner, false}
	}
}

// historyLost notes that the servers came back without the transactions of all tokens so far. A
// process that has not seen these may be granted before another one raises the generation.
func (c *checker) historyLost() {
	for _, greatest := range c.greatest {
		for use, last := range greatest {
			last.lost = true
			greatest[use] = last
		}
	}
}

// ended notes that the holder no longer believes in its grant.
func (c *checker) ended(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id && h.invalidated {
			c.noteDeletedNodeEnd(h.process+h.uses[0].path, now+h.endDelay)
		}
	}
	c.held = slices.DeleteFunc(c.held, func(h *heldGrant) bool { return h.id == id })
}

// noteDeletedNodeEnd notes when a lock may have heard of the end of a process's grant whose node was already deleted.
func (c *checker) noteDeletedNodeEnd(processAndPath string, at time.Duration) {
	c.deletedNodeEnded[processAndPath] = max(c.deletedNodeEnded[processAndPath], at)
}

// beginInvalidation notes that the nodes of some grants are being deleted, or their sessions ended,
// by force. Other owners may hold from now on.
func (c *checker) beginInvalidation(which func(*heldGrant) bool) {
	for _, h := range c.held {
		if which(h) && !h.invalidated {
			h.invalidated, h.noticeBy = true, never
		}
	}
}

// invalidate notes that the nodes are deleted, or the sessions ended. The holders must learn of
// that within lossNoticeTime.
func (c *checker) invalidate(now time.Duration, which func(*heldGrant) bool) {
	for _, h := range c.held {
		if which(h) && !h.invalidated {
			c.endUncleanly(now, h)
		}
	}
	c.beginInvalidation(which)
	for _, h := range c.held {
		if which(h) && !h.foreign {
			h.noticeBy = min(h.noticeBy, now+lossNoticeTime)
		}
	}
}

// lossNoticeTime is how long a holder may not know that its grant is invalidated, if no fault
// delays what it learns. A holder reads its node every two seconds.
const lossNoticeTime = 4 * time.Second

const never = 1000 * time.Hour

func hasNode(path string) func(*heldGrant) bool {
	return func(h *heldGrant) bool { return slices.Contains(h.nodes, path) }
}

func ofSession(id int64) func(*heldGrant) bool {
	return func(h *heldGrant) bool { return h.session == id }
}

// checkNoticed checks that the holders of invalidated grants have learned of it in time.
func (c *checker) checkNoticed(now time.Duration) {
	for _, h := range c.held {
		if h.invalidated && now > h.noticeBy && now > h.unaffectedSince()+lossNoticeTime {
			c.fail(now, "the grant %d of %s is invalidated, and its holder does not know", h.id, h.owner)
			h.noticeBy = never
		}
	}
}
