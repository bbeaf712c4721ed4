package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// programRequest is one request of a process's program, from asking to the end of its release.
type programRequest struct {
	w       *world
	p       *process
	rand    *rand.Rand
	id      int
	uses    []use
	path    string
	lock    locker
	owner   string // "" is one of its own
	named   bool
	multi   bool
	try     bool
	early   bool // it was asked for before a release of the same moment
	timeout time.Duration
	cancel  bool          // it may be cancelled
	most    time.Duration // it holds so long at most; 0: without limit
	fails   bool          // it ends with its session
	ctx     context.Context
	end     context.CancelFunc
	session int64 // when it asked

	state    requestStage
	asked    time.Duration
	future   *actors.Future[*actors.Grant]
	grant    *actors.Grant
	believed bool
	lingers  bool  // its session is lost, and its work goes on
	sound    bool  // it was released by an owner that believed in it
	over     error // why the grant ended
	released *actors.Future[struct{}]
	since    time.Duration // of the state
	waited   time.Duration // when it was last seen to wait
	quit     bool          // its process was killed
	leaving  bool          // it was cancelled
	heeds    bool          // it releases when it is asked to
	absent   bool          // nothing reads the answer
	dropped  bool          // the grant was: it holds until it is lost
	free     time.Duration // since when it waits for a lock without a holder
	hold     time.Duration
	granted  func() // is called with the grant, if it is set
	lost     func() // with its loss
	then     func() // with the release
}

type requestStage int

const (
	waiting requestStage = iota
	holds
	releasing
	done
)

func (s requestStage) String() string { return []string{"waits", "holds", "releases", "done"}[s] }

func (r *programRequest) String() string {
	return fmt.Sprintf("%d of %s for %s %v since %v", r.id, r.p.name, r.path, r.state, r.since)
}

// opKinds are the operations. The first is always on.
var opKinds = []string{"op plain", "op options", "op owner", "op multi", "op owner multi", "op actor"}

// maxOpen bounds the requests that are open at one time: one event of more of them could take
// so long that Go has other goroutines run first.
const maxOpen = 50

// ask makes the request of an entry.
func (w *world) ask(e entry) {
	p := w.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || len(w.open) > maxOpen {
		return
	}
	r := w.newRequest(p, e.rand())
	if strings.HasSuffix(e.what, "multi") {
		r.multi = true
		r.send(e.what, r.several(1+r.rand.IntN(4)))
		return
	}
	a := p.alone(r.rand)
	r.uses = []use{a.use}
	var options []actors.Option
	if a.permits > 1 {
		options = append(options, actors.Permits(a.permits))
	}
	r.send(e.what, a.Member.(locker), options...)
}

// askMember asks for the member lock at a path, if there is one, as the program that releases a
// request does in the same moment.
func (w *world) askMember(old *programRequest, path, what string, options ...actors.Option) *programRequest {
	if len(w.open) > maxOpen || old.p.dead {
		return nil
	}
	return w.askAt(old.p, old.rand, path, what, options...)
}

// askAt asks for the member lock at a path, if there is one.
func (w *world) askAt(p *process, rnd *rand.Rand, path, what string, options ...actors.Option) *programRequest {
	if !p.isUp() || p.frozen {
		return nil
	}
	r := w.newRequest(p, rnd)
	a := p.at(path, r.rand)
	if a.Member == nil {
		return nil
	}
	r.uses, r.try = []use{a.use}, what == "op again"
	r.send(what, a.Member.(locker), options...)
	return r
}

func (w *world) newRequest(p *process, rnd *rand.Rand) *programRequest {
	w.asked++
	return &programRequest{w: w, p: p, rand: rnd, id: w.asked, asked: w.now(), since: w.now(), session: p.session}
}

// send asks for the lock with the options that an operation of the kind draws.
func (r *programRequest) send(what string, lock locker, options ...actors.Option) {
	w, p, rnd := r.w, r.p, r.rand
	if strings.Contains(what, "owner") {
		if r.named = true; r.owner == "" {
			r.owner = fmt.Sprint(p.name, "/", rnd.IntN(3))
		}
		options = append(options, actors.WithOwner(actors.Owner(r.owner)))
		r.timeout = time.Duration(1 + rnd.Int64N(int64(20*time.Second))) // owners may wait for themselves
	} else {
		r.owner = fmt.Sprint(p.name, "#", r.id)
	}
	if what == "op options" || !r.try && rnd.Float64() < w.plan.fickle {
		switch rnd.IntN(8) {
		case 0:
			r.try = true
			options = append(options, actors.Try())
		case 1:
			r.timeout = time.Duration(1 + rnd.Int64N(int64(5*time.Second)))
		case 2:
			r.cancel = true
			w.after(time.Duration(rnd.Int64N(int64(2*time.Second))), r.giveUp)
		case 3:
			options = append(options, actors.Revocable())
		case 4:
			options = append(options, actors.WithData([]byte("data of "+r.owner)))
		case 5:
			r.cancel = true
			w.after(time.Duration(rnd.Int64N(int64(20*time.Millisecond))), r.giveUp)
		case 6:
			w.after(time.Duration(rnd.Int64N(int64(2*time.Second))), r.drop)
		case 7: // never looked at
			r.absent = true
			w.after(time.Duration(rnd.Int64N(int64(5*time.Second))), r.drop)
		}
	}
	options = append(options, r.limits()...)
	if r.timeout > 0 {
		options = append(options, actors.WithTimeout(r.timeout))
	}
	r.hold = time.Duration(rnd.ExpFloat64() * float64(w.plan.hold))
	if rnd.IntN(20) == 0 || r.named && rnd.IntN(3) == 0 {
		r.hold *= 40
	}
	r.path, r.lock = lock.Path(), lock
	r.heeds = rnd.IntN(2) == 0
	r.ctx, r.end = context.WithCancel(context.Background())
	w.open = append(w.open, r)
	w.line("%d of %s asks for %s as %s: try %v, timeout %v", r.id, p.name, describe(r.uses), r.owner, r.try, r.timeout)
	r.future = lock.Acquire(r.ctx, options...)
}

func describe(uses []use) string {
	var all []string
	for _, u := range uses {
		all = append(all, fmt.Sprintf("%s:%d:%d", u.path, u.kind, u.weight))
	}
	return strings.Join(all, "+")
}

// several makes a multi-lock of n locks, or fewer.
func (r *programRequest) several(n int) locker {
	var members []actors.Member
	seen := map[string]bool{}
	for range n {
		a := r.p.member(r.rand)
		if seen[a.use.path] {
			continue
		}
		seen[a.use.path] = true
		members = append(members, a.Member)
		r.uses = append(r.uses, a.use)
	}
	return r.p.locks.MultiLock(members...)
}

// giveUp cancels the request if it still waits.
func (r *programRequest) giveUp() {
	if r.state != waiting || r.quit {
		return
	}
	if r.p.frozen {
		r.w.after(100*time.Millisecond, r.giveUp)
		return
	}
	r.leaving = true
	r.w.line("%d is given up", r.id)
	if r.rand.IntN(2) == 0 {
		r.end()
	} else {
		r.future.Cancel()
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// look does as many steps as it can.
func (r *programRequest) look(now time.Duration) {
	if r.p.frozen || r.quit {
		return
	}
	switch r.state {
	case waiting:
		if !r.absent && isDone(r.future.Done()) {
			r.answered(now)
			return
		}
		r.waited = now
	case holds:
		if r.heeds && isDone(r.grant.Revoked()) {
			r.release()
		}
	case releasing:
		if isDone(r.released.Done()) {
			_, err := r.released.Result()
			r.w.line("%d is released: %v", r.id, err)
			r.checkRelease(now, err)
			r.finish()
		}
	}
}

func (r *programRequest) answered(now time.Duration) {
	grant, err := r.future.Result()
	if err != nil {
		r.w.line("%d gets: %v", r.id, err)
		if !r.fits(now, err) {
			r.w.fail(now, "%v: the answer does not fit: %v", r, err)
		}
		if errors.Is(err, actors.ErrNotAcquired) {
			r.checkTry(now)
		}
		r.finish()
		return
	}
	r.waited = max(r.waited, r.since)
	r.grant, r.state, r.since = grant, holds, now
	r.w.grants++
	r.w.line("%d is granted: token %v, node %s", r.id, grant.Token(), grant.Node())
	if grant.Err() != nil {
		r.w.ousted[r.p.name+r.uses[0].path] = now
	} else {
		r.believed = true
		h := &holding{id: r.id, owner: r.owner, token: grant.Token(), uses: r.uses, nodes: grant.Nodes(),
			session: grant.Session(), calm: r.p.calm, process: r.p.name, news: r.news(), soonest: r.p.host.soonest()}
		r.w.note(h)
		r.checkNews(now, h)
		r.w.checkOrder(now, r)
		r.w.checkBudget(now, r)
		r.w.checkHandOver(now, r)
		r.useRegisters()
		if r.rand.IntN(8) == 0 {
			r.w.after(time.Duration(r.rand.Int64N(1+int64(r.hold))), r.asks)
		}
		if r.granted != nil {
			r.granted()
		}
	}
	r.w.after(r.hold, r.release)
}

// note tells the checker of a grant, whose node may have gone before it was heard of. Where it is not known
// whether a node was deleted, as after a Revoke that was not answered, its holder need not ever know.
func (w *world) note(h *holding) {
	at, gone := w.expired[h.session]
	h.taken = gone
	for _, node := range h.nodes {
		if _, was := w.gone[node]; was && len(h.nodes) == 1 && h.token.Czxid > w.deletions.get(node).zxid {
			// The node is made anew: a repeated create has its former name if the directory was
			// deleted, too. A grant by several nodes has the token of the last one.
			delete(w.deleted, node)
			delete(w.gone, node)
		}
		if _, may := w.deleted[node]; may {
			h.taken = true
		}
		if since, was := w.gone[node]; was {
			at, gone = max(at, since), true
		}
	}
	if late := at + knowledge; gone && !h.foreign && w.now() > late && w.now() > h.calm()+knowledge {
		w.fail(w.now(), "grant %d of %s rests on a node that was deleted at %v", h.id, h.owner, at)
	}
	if !h.foreign && len(h.nodes) == 1 {
		h.gone = w.gone[h.nodes[0]]
		h.outlived = h.gone > 0 && w.isOutlived(h.nodes[0], h.soonest)
	}
	h.until = never
	if gone && !h.foreign {
		h.until = w.now() + knowledge
	}
	w.specs[root+"/shared"].room = w.sharedRoom(h.calm)
	w.granted(w.now(), h)
}

// calm is since when no fault has an effect on the process.
func (p *process) calm() time.Duration {
	if p.isShaky() {
		return never
	}
	return p.shaky
}

func (r *programRequest) release() {
	if r.state != holds || r.quit || r.dropped {
		return
	}
	if r.p.frozen {
		r.w.after(100*time.Millisecond, r.release)
		return
	}
	r.endWork()
	r.sound = r.believed
	if r.believed {
		r.believed = false
		r.w.ended(r.w.now(), r.id)
	}
	r.state, r.since = releasing, r.w.now()
	r.w.line("%d releases", r.id)
	again := r.rand.IntN(4) == 0 && !r.multi
	if again && r.rand.IntN(2) == 0 { // what follows goes together, when this is answered
		if company := r.w.askMember(r, pick(r.rand, []string{root + "/m0", root + "/m1"}), "op company"); company != nil {
			company.early = true
		}
	}
	r.released = r.grant.Release()
	if again {
		r.w.askMember(r, r.path, "op again", actors.Try())
	}
	if r.then != nil {
		r.then()
	}
	if r.p.replaces && r.sound {
		r.w.replaceAfter(r)
	}
}

func (r *programRequest) finish() {
	r.close()
	r.end()
}

// close ends the request, but not its context.
func (r *programRequest) close() {
	r.w.noteEnd(r)
	r.state = done
	r.w.closed[r.owner] = r.w.now()
}

// kill is the end of the request's process.
func (r *programRequest) kill() {
	r.quit = true
	r.endWork()
	if r.believed {
		r.believed = false
		r.w.lost(r.w.now(), r.id)
	}
	r.finish()
}
