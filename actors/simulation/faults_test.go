package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// faultKinds are the faults. A random subset is switched on per seed.
var faultKinds = []string{"cut", "slow", "late", "hole", "expire", "freeze", "kill",
	"close", "actor stops", "server away", "request", "stale", "delete", "write", "rights", "sequence", "generation",
	"follower", "drop", "count", "revoke", "session node", "simple node"}

// scenes are the operations that are more than one request.
var scenes = map[string]func(*world, entry){
	"op actor": (*world).askAsActor, "op future": (*world).askByFuture, "op missing": (*world).askInMissing,
	"op readers": (*world).askReaders, "op four": (*world).askFour, "op lost": (*world).askBehindLost,
	"op list": (*world).askAfterList, "op overdue": (*world).loseByClock, "op owner lost": (*world).askAfterLoss,
	"op simple": (*world).deleteLockNode, "op observe": (*world).observe,
}

// perform does what the entry says.
func (w *world) perform(e entry) {
	if scene := scenes[e.what]; scene != nil {
		scene(w, e)
		return
	}
	if !e.isFault() {
		w.ask(e)
		return
	}
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen || w.isResting(e) {
		return
	}
	w.line("%s: %s", p.name, e.what)
	w.faulty = w.now()
	w.befall(e.what, p, r)
}

// rests are how many session timeouts must be between two faults of a kind at one process, or at
// the server, where they last: else there would be nothing but the fault.
var rests = map[string]time.Duration{"slow": 3, "late": 5, "hole": 3, "freeze": 3, "stale": 2, "kill": 1, "close": 1}

// isResting reports whether a fault comes too soon.
func (w *world) isResting(e entry) bool {
	key, rest := fmt.Sprint(e.what, e.slot), rests[e.what]*w.plan.session
	switch e.what {
	case "server away":
		key, rest = e.what, time.Minute+2*w.plan.session
	case "delete", "write", "rights":
		return w.operator.open.Load() > 10
	}
	if rest == 0 {
		return false
	}
	if since, was := w.rested[key]; was && w.now() < since+rest {
		return true
	}
	w.rested[key] = w.now()
	return false
}

func (w *world) befall(what string, p *process, r *rand.Rand) {
	span := time.Duration(r.Int64N(int64(2 * w.plan.session)))
	switch r.IntN(3) {
	case 0:
		span /= 10
	case 1: // about as long as it takes to lose the session
		span = w.plan.session/2 + span*3/10
	}
	switch what {
	case "cut":
		p.interrupt(3 * time.Second)
		p.host.cut()
	case "slow":
		p.disturb(span + time.Second)
		p.host.slowDown(time.Duration(r.Int64N(int64(w.plan.session / 2))))
		w.lasting(span, func() { p.host.slowDown(0) })
	case "late": // answers come late, and then the server hears nothing more
		wait := time.Duration(r.Int64N(int64(w.plan.session)))
		p.disturb(wait + 2*w.plan.session + 3*time.Second)
		p.host.answerLate(w.plan.session/5 + time.Duration(r.Int64N(int64(w.plan.session/3))))
		over := false
		w.after(wait, func() {
			if !over {
				p.host.silence()
			}
		})
		w.lasting(wait+2*w.plan.session, func() {
			over = true
			p.host.answerLate(0)
			p.free()
		})
	case "hole":
		p.disturb(span + 3*time.Second)
		p.host.hold(true)
		w.lasting(span, func() { p.free() })
	case "expire":
		p.interrupt(3 * time.Second)
		w.expire(p)
	case "freeze":
		p.disturb(span + 3*time.Second)
		p.host.hold(true)
		p.frozen = true
		if p.apart != nil {
			p.apart.freeze()
		}
		w.lasting(span, func() {
			p.frozen = false
			if p.apart != nil {
				p.apart.unfreeze()
			}
			p.free()
		})
	case "kill":
		w.kill(p)
		if r.IntN(2) == 0 {
			p.host.cut() // the system hangs up
		}
		next := len(w.all)
		w.lasting(span, func() { w.startProcess(p.slot, next) })
	default:
		w.befallServer(what, p, r, span)
	}
}

// requestFaults are what the server may do wrong with a request.
var requestFaults = []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest,
	embedded.DelayReply, embedded.BlackHole, embedded.BlackHoleAfter}

// befallServer is befall for what comes from the server's side or by an operator.
func (w *world) befallServer(what string, p *process, r *rand.Rand, span time.Duration) {
	directory := w.busyDirectory(r)
	switch what {
	case "close":
		p.close()
		next := len(w.all)
		w.lasting(span, func() { w.startProcess(p.slot, next) })
	case "server away":
		span = time.Second + time.Duration(r.Int64N(int64(59*time.Second)))
		if w.net.refusing.Load() {
			return
		}
		for _, p := range w.all {
			p.disturb(span + 2*w.plan.session)
		}
		w.goAway(r.IntN(2) == 0)
		w.lasting(span, w.comeBack)
	case "request":
		p.disturb(3*time.Second + w.plan.session)
		f := embedded.Fault{Op: pick(r, []embedded.Op{embedded.OpAny, embedded.OpMulti, embedded.OpAll, embedded.OpGetChildren2}), Session: p.session,
			Nth: 1 + r.IntN(5), Times: 1 + r.IntN(2), Action: pick(r, requestFaults), Delay: time.Duration(r.Int64N(int64(w.plan.session)))}
		w.line("%s: %v of %v", p.name, f.Action, f.Op)
		i := w.server.Inject(f)
		w.lasting(span, func() {
			i.Remove()
			p.disturb(3*time.Second + w.plan.session)
			p.host.cut() // there may be a black hole
		})
	case "actor stops":
		for _, o := range w.owners {
			if o.p == p && o.name == "" && r.IntN(2) == 0 {
				o.stop()
			}
		}
	case "stale":
		p.disturb(span + 3*time.Second)
		session := p.session
		w.server.Freeze(session)
		w.lasting(span, func() { w.server.Thaw(session) })
	case "follower":
		w.follow(p, r, span)
	case "lag":
		w.lag(r, span)
	case "member":
		w.leaveEnsemble(r, span)
	case "replace":
		p.replaces, p.hides = true, false
	case "replace and hide":
		p.replaces, p.hides = true, true
	case "lease":
		w.operator.do(func() { w.operator.deleteOne(root+"/s3/leases", r, func(string) bool { return true }) })
	case "turn":
		w.turn(p, r)
	case "still":
		w.standStill(p, span)
	case "unresolved", "held":
		w.leaveUnresolved(p, what == "unresolved")
	case "drop":
		w.dropGrants(p, r, span)
	case "count":
		w.changeCount(p, r)
	case "revoke":
		w.revoke(p, r)
	case "session node":
		w.operator.do(func() {
			w.operator.deleteOne(zkbridge.GenerationDirectory, r, func(name string) bool { return strings.HasPrefix(name, "session-") })
		})
	case "simple node": // but not the one that others wait for, by which nothing is promised
		w.operator.do(func() {
			w.operator.deleteOne(pick(r, []string{root + "/simple", root + "/simplerw"}), r, func(name string) bool { return name != "lock" && name != "W" })
		})
	case "delete":
		w.operator.do(func() { w.operator.delete(directory, r) })
	case "write":
		w.operator.do(func() { w.operator.write(directory, r) })
	case "rights":
		w.operator.do(func() { w.operator.deny(directory, r, span) })
	case "sequence":
		w.sequence(directory, r)
	case "generation":
		w.raise(p)
	}
}

// raise has a process raise the generation. A create between two raises of which its process has
// seen only the last is repeated, so the order of requests does not count until it is over.
func (w *world) raise(p *process) {
	w.raising++
	go func() {
		g, err := p.locks.RaiseGeneration(context.Background())
		w.line("%s raises the generation to %d: %v", p.name, g, err)
		w.locked(func() {
			w.raising--
			w.faulty = w.now()
		})
	}()
}

// goAway has the server be away: its connections break, and it takes no new ones. Sessions expire
// meanwhile, unless it restarts: then their time begins anew when it comes back.
func (w *world) goAway(restarts bool) {
	w.net.refusing.Store(true)
	for i, h := range w.net.hosts { // at times of their own, as each client sets timers then
		w.after(time.Duration(i)*time.Microsecond, h.cut)
	}
	if !restarts {
		w.server.Pause()
		return
	}
	w.line("the server ends, to be started again")
	w.after(10*time.Millisecond, func() { // when it has no connections
		if w.net.refusing.Load() {
			w.server.Halt()
		}
	})
}

func (w *world) comeBack() {
	w.net.refusing.Store(false)
	w.server.Resume()
	w.server.Restart()
}

// free lets the connections of a process go on.
func (p *process) free() {
	if !p.dead {
		p.host.hold(false)
	}
}

// follow has half of the processes be at a server that lags behind: it catches up now and then, and
// when it answers a write.
func (w *world) follow(p *process, r *rand.Rand, span time.Duration) {
	followers := map[*process]int64{}
	for _, q := range w.slots {
		if q != nil && q.isUp() && q.slot%2 == p.slot%2 && q.session != 0 {
			q.disturb(span + 3*time.Second)
			followers[q] = q.session
		}
	}
	each := func(do func(session int64)) {
		for _, q := range w.slots {
			if session, ok := followers[q]; ok {
				do(session)
			}
		}
	}
	over := false
	var lag func()
	lag = func() {
		if !over {
			each(w.server.Thaw)
			each(w.server.Freeze)
			w.after(time.Duration(1+r.Int64N(int64(2*time.Second))), lag)
		}
	}
	lag()
	w.lasting(span, func() {
		over = true
		each(w.server.Thaw)
	})
}

// lasting has undo called after a time, or when all faults end.
func (w *world) lasting(d time.Duration, undo func()) {
	over := false
	w.active++
	once := func() {
		if !over {
			over = true
			w.active--
			w.faulty = w.now()
			undo()
		}
	}
	w.undo = append(w.undo, once)
	w.after(d, once)
}

// heal ends all faults.
func (w *world) heal() {
	w.healing = true
	w.dismissCandidates()
	w.line("all faults end")
	for len(w.undo) > 0 {
		undo := w.undo
		w.undo = nil
		for _, f := range undo {
			f()
		}
	}
}

// expire has the server end the session of a process, which believes in its grants until it
// hears of that.
func (w *world) expire(p *process) {
	if p.session == 0 {
		return
	}
	w.expired[p.session] = w.now()
	w.took(w.now(), ofSession(p.session))
	w.server.Expire(p.session)
}

// kill ends a process as kill -9 does: nothing more goes out, or comes in.
func (w *world) kill(p *process) {
	p.host.hold(true)
	p.host.die()
	for _, o := range w.owners {
		if o.p == p {
			o.kill()
		}
	}
	for _, r := range w.open {
		if r.p == p {
			r.kill()
		}
	}
	p.close()
}
