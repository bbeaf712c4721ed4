package simulation

import (
	"slices"
	"time"
)

// The order of grants, and the refusals of tries.

// checkOrder looks whether a request that was granted has overtaken an earlier one of its
// process, for the same lock.
func (w *world) checkOrder(now time.Duration, r *programRequest) {
	if r.named || r.multi || w.raising > 0 || r.path == root+"/simplerw" || w.overflow || now < w.denied || r.p.isShaky() {
		return
	}
	for _, o := range w.open {
		if o.state == waiting && o.p == r.p && o.path == r.path && o.asked < r.asked && !o.named && !o.leaving && !isDone(o.future.Done()) &&
			o.asked > max(r.p.shaky, w.faulty+time.Second) && (w.specs[r.uses[0].path].permits || w.conflicts(o, r)) {
			w.fail(now, "%v is granted before %v", r, o)
		}
	}
}

func (w *world) conflicts(a, b *programRequest) bool {
	for i := range a.uses {
		s := w.specs[a.uses[i].path]
		if s.conflict(s.key(a.uses[i]), s.key(b.uses[i])) {
			return true
		}
	}
	return false
}

// nodeHold is what a local queue holds of its lock: the node of a czxid.
type nodeHold struct {
	path  string
	p     *process
	czxid int64
}

// holdUse counts the grants of a node hold.
type holdUse struct {
	since time.Duration
	late  uint32 // how many came while another process has been waiting for long enough
}

// noticed is how long a contender of another process may wait until a local queue knows of it.
const noticed = 2 * time.Second

// checkBudget looks whether a local queue goes on when others wait and its budget is used up.
func (w *world) checkBudget(now time.Duration, r *programRequest) {
	if r.path != root+"/local" && r.path != root+"/rwlocal" || r.named || w.calmSince == 0 {
		return
	}
	key := nodeHold{r.path, r.p, r.grant.Token().Czxid}
	l := w.nodeHolds[key]
	if l == nil {
		l = &holdUse{since: now}
		w.nodeHolds[key] = l
	}
	waits := func(o *programRequest) bool {
		return o.state == waiting && o.p != r.p && o.path == r.path && !o.named && !o.try && !o.leaving && w.conflicts(o, r) && o.asked+noticed < now
	}
	if now < max(l.since, w.calmSince)+noticed || !slices.ContainsFunc(w.open, waits) {
		return
	}
	if l.late++; l.late > r.p.budget {
		w.fail(now, "%v is grant %d of a local queue after another process has begun to wait, of at most %d", r, l.late, r.p.budget)
	}
}

// ending is the last end of a request for a lock. of is nil for an actor, and for a multi-lock.
type ending struct {
	of       *programRequest
	at, prev time.Duration // of the end, and of that before
}

// checkHandOver looks whether the next one holds a mutex as soon as it hears that its predecessor has
// left, without another request: a contender that may be next watches its predecessor's node and
// its own. It does so when its node has been made for long enough, which takes three round trips if the
// directory is to be made, and another one for the watches.
func (w *world) checkHandOver(now time.Duration, r *programRequest) {
	last := w.endings[r.path]
	quiet := last.at - 8*r.p.host.far - 50*time.Millisecond
	if r.path != root+"/m0" && r.path != root+"/m1" || r.named || r.try || r.multi || w.overflow || w.futures || len(w.foreign) > 0 ||
		w.calmSince == 0 || w.calmSince > quiet || last.of == nil || last.of.p == r.p || last.of.named || last.of.asked > quiet || last.prev > min(quiet, r.asked) ||
		r.asked > quiet || last.of.asked > r.asked || last.at < r.asked || last.of.state != done || last.of.grant == nil || last.of.most > 0 {
		return
	}
	touches := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return u.path == r.path })
	}
	for _, o := range w.open {
		if o != r && touches(o.uses) && (o.asked <= r.asked || o.multi) {
			return
		}
	}
	for name, until := range w.busy[r.path] {
		if name != last.of.p.name && until > min(quiet, r.asked) {
			return
		}
	}
	if slices.ContainsFunc(w.owners, func(o *owner) bool { return touches(o.uses) }) {
		return
	}
	if late := now - last.at - r.p.host.far; late > 500*time.Microsecond {
		w.fail(now, "%v is granted %v later than it could have heard that its predecessor has left", r, late)
	}
}

// noteEnd notes how long the request has kept its locks from others.
func (w *world) noteEnd(r *programRequest) {
	until := w.now()
	if r.state == releasing {
		until = r.since
	}
	w.noteBusy(r.p, r.uses, until)
	if !r.multi {
		last := w.endings[r.path]
		last.of = r
		w.endings[r.path] = last
	}
	if r.multi {
		for _, u := range r.uses {
			w.multis[r.p.name+u.path] = w.now()
		}
	}
}

func (w *world) noteBusy(p *process, uses []use, until time.Duration) {
	for _, u := range uses {
		if w.busy[u.path] == nil {
			w.busy[u.path] = map[string]time.Duration{}
		}
		w.busy[u.path][p.name] = max(w.busy[u.path][p.name], until)
		w.endings[u.path] = ending{at: w.now(), prev: w.endings[u.path].at}
	}
}

// settled is how long it may take until the nodes of a request that has ended are gone.
const settled = 500 * time.Millisecond

// checkTry looks whether a try was refused although the lock was free when it was asked for, and
// ever since: those of other processes had ended some time before, those of its own had been
// released.
func (r *programRequest) checkTry(now time.Duration) {
	w := r.w
	if !r.isDirect() || r.named || r.early || w.overflow || w.futures || w.calmSince == 0 || r.asked < w.calmSince+noticed ||
		len(w.foreign) > 0 && (r.path == root+"/m0" || r.path == root+"/rw") {
		return
	}
	touches := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return u.path == r.path })
	}
	for _, o := range w.open {
		if o != r && touches(o.uses) && (o.multi || o.p != r.p || o.released == nil || o.since > r.asked) {
			return
		}
	}
	if slices.ContainsFunc(w.owners, func(o *owner) bool { return touches(o.uses) }) || w.sinceMulti(r.p, r.path) < remembered {
		return
	}
	for name, until := range w.busy[r.path] {
		if name == r.p.name && until > r.asked || name != r.p.name && until+settled > r.asked {
			return
		}
	}
	w.fail(now, "%v was refused, and no request had the lock", r)
}
