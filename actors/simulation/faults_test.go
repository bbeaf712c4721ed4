package simulation

import (
	"math/rand/v2"
	"time"
)

// faultKinds are the faults. A random subset is switched on per seed.
var faultKinds = []string{"cut", "slow", "hole", "expire", "freeze", "kill"}

// perform does what the entry says.
func (w *world) perform(e entry) {
	if !e.isFault() {
		w.ask(e)
		return
	}
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen {
		return
	}
	w.line("%s: %s", p.name, e.what)
	w.faulty = w.now()
	w.befall(e.what, p, r)
}

func (w *world) befall(what string, p *process, r *rand.Rand) {
	span := time.Duration(r.Int64N(int64(2 * w.plan.session)))
	if r.IntN(2) == 0 {
		span /= 10
	}
	switch what {
	case "cut":
		p.disturb(3 * time.Second)
		p.host.cut()
	case "slow":
		p.disturb(span + time.Second)
		p.host.slow = time.Duration(r.Int64N(int64(w.plan.session / 2)))
		w.lasting(span, func() { p.host.slow = 0 })
	case "hole":
		p.disturb(span + 3*time.Second)
		p.host.hold(true)
		w.lasting(span, func() { p.free() })
	case "expire":
		p.disturb(3 * time.Second)
		w.expire(p)
	case "freeze":
		p.disturb(span + 3*time.Second)
		p.host.hold(true)
		p.frozen = true
		w.lasting(span, func() {
			p.frozen = false
			p.free()
		})
	case "kill":
		w.kill(p)
		if r.IntN(2) == 0 {
			p.host.cut() // the system hangs up
		}
		next := len(w.all)
		w.lasting(span, func() { w.startProcess(p.slot, next) })
	}
}

// free lets the connections of a process go on.
func (p *process) free() {
	if !p.dead {
		p.host.hold(false)
	}
}

// lasting has undo called after a time, or when all faults end.
func (w *world) lasting(d time.Duration, undo func()) {
	over := false
	once := func() {
		if !over {
			over = true
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
	for _, r := range w.open {
		if r.believed && r.grant.Session() == p.session {
			w.take(r.id, w.now()+p.bound())
		}
	}
	w.server.Expire(p.session)
}

// kill ends a process as kill -9 does: nothing more goes out, or comes in.
func (w *world) kill(p *process) {
	p.host.hold(true)
	p.host.dead = true
	for _, r := range w.open {
		if r.p == p {
			r.kill()
		}
	}
	p.close()
}
