package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// checker hears of each grant and of its end, and looks whether two grants contradict each other. It is
// pure: the caller passes the time.
type checker struct {
	specs      map[string]*spec
	held       []*holding
	recent     map[string][]*holding        // grants of the last moments, by path
	ousted     map[string]time.Duration     // when the last grant of a process ended whose node was gone, by process and path
	unclean    map[string]time.Duration     // when the last holder ended without a release, by path
	newest     map[string]map[int]grantedTo // by path and weight or kind
	violations []string
	failedAt   time.Duration // for the first time
}

// grantedTo is the greatest token of some grants, and whose it was.
type grantedTo struct {
	actors.Token
	owner string
}

// spec is the rule of one lock. Two uses conflict if their weights together are more than
// room, or by excludes if that is set.
type spec struct {
	room     int
	most     int           // where room changes: what it may be at most
	permits  bool          // each grant has its own permits; there is no re-entry
	excludes [][]bool      // by kind
	delay    time.Duration // keeps the lock closed after a holder that did not release it
}

// use is what a grant has of one lock.
type use struct {
	path   string
	kind   int
	weight int
}

// key tells apart uses whose conflicts differ.
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
	return a+b > max(s.room, s.most)
}

// holding is a grant whose holder may believe in it.
type holding struct {
	id      int
	owner   string // tells apart owners of all processes
	token   actors.Token
	uses    []use
	nodes   []string
	session int64
	foreign bool                 // of another library, whose grants have no tokens
	calm    func() time.Duration // since when nothing has kept the holder from knowing what is done by force
	taken   bool                 // its node was deleted, or its session ended, by force
	until   time.Duration        // taken: when the holder must know

	process  string
	since    time.Duration
	gone     time.Duration // since when its node was no more for sure when it was granted; 0: it was there
	soonest  time.Duration // how long news take to the process at least
	outlived bool          // its node is gone, and the process heard later that a contender ahead of it left
	news     time.Duration // how long an answer may be on its way to the process; 0: that is not known
}

func newChecker(specs map[string]*spec) *checker {
	return &checker{specs: specs, newest: map[string]map[int]grantedTo{}, unclean: map[string]time.Duration{},
		recent: map[string][]*holding{}, ousted: map[string]time.Duration{}}
}

func (c *checker) fail(now time.Duration, format string, args ...any) {
	if len(c.violations) == 0 {
		c.failedAt = now
	}
	c.violations = append(c.violations, fmt.Sprintf("at %v: ", now)+fmt.Sprintf(format, args...))
}

// granted notes that the owner holds.
func (c *checker) granted(now time.Duration, h *holding) {
	h.since = now
	for _, u := range h.uses {
		c.checkPassed(now, h, u)
		c.checkDelay(now, h, u)
		c.checkOverlap(now, h, u)
		c.checkToken(now, h, u)
	}
	c.held = append(c.held, h)
}

// remembered is how long a grant counts as recent.
const remembered = 10 * time.Second

// checkPassed looks whether a contender whose node is gone is granted after another process has
// passed it. The other one could hold only when all that had been ahead of the contender had left.
// So if the process has heard of the last departure, the proof of its own node is newer than that;
// and that proof cannot have been on its way for longer than any answer. A holder of the same
// process that had lost its node itself is no such departure. If those ahead left so early that the process may
// have heard of them before its own node was gone, the proof may come in between: it is like a holder
// whose node is deleted.
func (c *checker) checkPassed(now time.Duration, h *holding, u use) {
	s := c.specs[u.path]
	recent := slices.DeleteFunc(c.recent[u.path], func(g *holding) bool { return g.since < now-remembered })
	c.recent[u.path] = append(recent, h)
	if h.gone == 0 || !h.outlived || h.news == 0 || now <= h.gone+h.news {
		return
	}
	for _, g := range recent {
		if g.process == h.process || g.since <= h.gone || g.taken || !s.conflict(s.key(g.uses[0]), s.key(u)) || len(g.uses) > 1 {
			continue
		}
		ousted, was := c.ousted[h.process+u.path]
		is := slices.ContainsFunc(c.held, func(l *holding) bool { return l.process == h.process && l.taken && l.uses[0].path == u.path })
		if !is && !(was && ousted >= g.since) {
			c.fail(now, "%s: grant %d of %s is on a node that was gone at %v, and grant %d of %s was made since", u.path, h.id, h.owner, h.gone, g.id, g.owner)
		}
	}
}

// checkDelay looks whether a lock with a lock-delay was closed for long enough.
func (c *checker) checkDelay(now time.Duration, h *holding, u use) {
	since, unclean := c.unclean[u.path]
	if unclean && !h.taken && now < since+c.specs[u.path].delay {
		c.fail(now, "%s: grant %d of %s comes %v after a holder that did not release", u.path, h.id, h.owner, now-since)
	}
	delete(c.unclean, u.path)
}

// lost is ended, for a holder that did not release.
func (c *checker) lost(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id && !h.taken {
			c.endUncleanly(now, h)
		}
	}
	c.ended(now, id)
}

// lingers notes a holder that has lost its session and ends its work yet. If the servers have
// ended the session earlier, by force, that is no fault of the library.
func (c *checker) lingers(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id {
			if !h.taken {
				c.endUncleanly(now, h)
			}
			h.calm = func() time.Duration { return never }
		}
	}
}

func (c *checker) endUncleanly(now time.Duration, h *holding) {
	for _, u := range h.uses {
		if c.specs[u.path].delay > 0 && !c.isReentered(h) {
			c.unclean[u.path] = now
		}
	}
}

// isReentered reports whether another grant of the same owner is by the same node.
func (c *checker) isReentered(h *holding) bool {
	return slices.ContainsFunc(c.held, func(other *holding) bool { return other != h && c.again(h, other, h.uses[0].path) })
}

// again reports whether h enters what other has.
func (c *checker) again(h, other *holding, path string) bool {
	return !c.specs[path].permits && h.owner == other.owner && h.token == other.token
}

func (c *checker) checkOverlap(now time.Duration, h *holding, u use) {
	if h.taken {
		return
	}
	s := c.specs[u.path]
	total, by := u.weight, []string{}
	shared := map[string]int{h.owner + h.token.String(): u.weight}
	for _, other := range c.held {
		for _, o := range other.uses {
			if o.path != u.path || other.taken {
				continue
			}
			switch {
			case s.excludes != nil:
				if s.excludes[u.kind][o.kind] && !c.again(h, other, u.path) {
					c.fail(now, "%s: grant %d of %s for kind %d beside grant %d of %s for kind %d", u.path, h.id, h.owner, u.kind, other.id, other.owner, o.kind)
				}
				continue
			case s.permits:
				total += o.weight
			case c.again(h, other, u.path):
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
	if s.excludes == nil && total > s.room {
		c.fail(now, "%s: grant %d of %s makes %d of %d, beside grants %v", u.path, h.id, h.owner, total, s.room, by)
	}
}

func (c *checker) checkToken(now time.Duration, h *holding, u use) {
	if h.foreign || h.taken { // others may have been granted the lock already; then its token is to be the smaller one
		return
	}
	newest := c.newest[u.path]
	if newest == nil {
		newest = map[int]grantedTo{}
		c.newest[u.path] = newest
	}
	s := c.specs[u.path]
	mine := s.key(u)
	for key, last := range newest {
		again := !s.permits && h.owner == last.owner && h.token == last.Token // whether or not that is over
		if !again && s.conflict(mine, key) && h.token.Compare(last.Token) <= 0 {
			c.fail(now, "%s: grant %d of %s has token %v, not greater than %v of an earlier grant", u.path, h.id, h.owner, h.token, last.Token)
		}
	}
	if h.token.Compare(newest[mine].Token) > 0 {
		newest[mine] = grantedTo{h.token, h.owner}
	}
}

// ended notes that the holder does not believe in its grant any more.
func (c *checker) ended(now time.Duration, id int) {
	for _, h := range c.held {
		if h.id == id && h.taken {
			c.ousted[h.process+h.uses[0].path] = now
		}
	}
	c.held = slices.DeleteFunc(c.held, func(h *holding) bool { return h.id == id })
}

// take notes that the nodes of some grants are being deleted, or their session ended, by
// force: others may hold from now on.
func (c *checker) take(which func(*holding) bool) {
	for _, h := range c.held {
		if which(h) && !h.taken {
			h.taken, h.until = true, never
		}
	}
}

// took notes that take has happened: the holders must know in time.
func (c *checker) took(now time.Duration, which func(*holding) bool) {
	for _, h := range c.held {
		if which(h) && !h.taken {
			c.endUncleanly(now, h)
		}
	}
	c.take(which)
	for _, h := range c.held {
		if which(h) && !h.foreign {
			h.until = min(h.until, now+knowledge)
		}
	}
}

// knowledge is how long it may take a holder to know what was done by force, if nothing keeps
// it from knowing: it looks every two seconds.
const knowledge = 4 * time.Second

const never = 1000 * time.Hour

func hasNode(path string) func(*holding) bool {
	return func(h *holding) bool { return slices.Contains(h.nodes, path) }
}

func ofSession(id int64) func(*holding) bool {
	return func(h *holding) bool { return h.session == id }
}

// tick looks at what should have happened by now.
func (c *checker) tick(now time.Duration) {
	for _, h := range c.held {
		if h.taken && now > h.until && now > h.calm()+knowledge {
			c.fail(now, "grant %d of %s was taken from it, and it does not know", h.id, h.owner)
			h.until = never
		}
	}
}
