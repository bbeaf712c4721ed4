package simulation

import "time"

// Losses, and what a process asks for after them.

// loseByClock has a process lose the session of a mutex that it holds, by its own clock, and be
// connected again at once. It asks for the mutex again, or another process does: they wait for the work
// under the lost grant to end.
func (w *world) loseByClock(e entry) {
	const path = root + "/m0"
	p, q, r := w.slots[e.slot], w.slots[(e.slot+1)%len(w.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(w.open) > 0 {
		return
	}
	holder, session := w.askAt(p, r, path, "op plain"), p.session
	holder.hold = 3 * w.plan.session
	w.after(8*p.host.far, func() {
		w.askAt(pick(r, []*process{p, q}), r, path, "op plain")
	})
	w.after(8*p.host.far+8*q.host.far, func() {
		w.faulty = w.now()
		p.disturb(2*w.plan.session + 3*time.Second)
		p.host.hold(true)
		over := false
		w.lasting(2*w.plan.session, func() {
			over = true
			p.free()
		})
		var connect func()
		connect = func() {
			if _, lost := p.former[session]; lost || over {
				p.free()
			} else {
				w.after(10*time.Millisecond, connect)
			}
		}
		connect()
	})
}

// standStill has the actors of a process stand still for longer than it hears nothing. Its clock may
// pass the deadline of its session, and the server answer before the actors go on.
func (w *world) standStill(p *process, span time.Duration) {
	if p.apart == nil {
		return
	}
	silence := w.plan.session*6/10 + span/5
	p.disturb(silence + w.plan.session + 3*time.Second)
	p.host.hold(true)
	p.frozen = true
	p.apart.freeze()
	w.lasting(silence, p.free)
	w.lasting(silence+w.plan.session/10, func() {
		p.frozen = false
		p.apart.unfreeze()
	})
}

// askAfterLoss has an owner ask again for what it has lost and not released: it is refused at once.
func (w *world) askAfterLoss(e entry) {
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(w.open) > 3 {
		return
	}
	paths := []string{root + "/m0", root + "/m1", root + "/rw"}
	old := w.askAt(p, r, pick(r, paths), "op owner")
	old.hold, old.heeds = 8*time.Second, false
	old.granted = func() {
		w.after(old.hold/4, func() {
			w.faulty = w.now()
			w.operator.do(func() { w.operator.deleteNode(old.grant.Nodes()[0]) })
		})
	}
	old.lost = func() {
		again := w.newRequest(p, r)
		again.uses, again.owner = old.uses, old.owner
		again.send("op owner", old.lock)
		w.after(time.Second, func() {
			if !isDone(again.future.Done()) && old.state == holds {
				w.fail(w.now(), "%v, and its owner has lost the lock by %v", again, old)
			}
		})
	}
}

// deleteLockNode has the operator delete the lock node of a simple lock for which another process waits.
// The holder must know that it has lost the lock, although there is a lock node again.
func (w *world) deleteLockNode(e entry) {
	const path = root + "/simple"
	p, q, r := w.slots[e.slot], w.slots[(e.slot+1)%len(w.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(w.open) > 0 {
		return
	}
	ask := func(p *process) *programRequest {
		simple := w.newRequest(p, r)
		lock := p.locks.SimpleMutex(path)
		simple.uses = []use{{path, 0, 1}}
		simple.send("op plain", lock)
		simple.hold, simple.heeds = 12*time.Second, false
		return simple
	}
	first := ask(p)
	first.granted = func() {
		ask(q)
		w.after(3*time.Second, func() { // it watches the node by now
			w.faulty = w.now()
			w.operator.do(func() { w.operator.deleteLockNode(first) })
		})
	}
}

func (o *operator) deleteLockNode(holder *programRequest) {
	w := o.w
	is := func(h *holding) bool { return h.id == holder.id }
	w.locked(func() { w.take(is) })
	err := o.conn.Delete(holder.path+"/lock", -1)
	w.line("operator deletes the lock node of %d: %v", holder.id, err)
	w.locked(func() { w.took(w.now(), is) })
}

// observe has a process ask for a mutex several times within moments, near the end of its numbers: one
// transaction makes most of the nodes. Holders ask for the participants.
func (w *world) observe(e entry) {
	const path = root + "/m0"
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(w.open) > 0 {
		return
	}
	ask := func() {
		one := w.askAt(p, r, path, "op plain")
		one.hold = 300 * time.Millisecond
		one.granted = func() { w.after(12*p.host.far, func() { one.asksWho(5 * time.Second) }) }
	}
	ask()
	w.after(10*p.host.far, func() { // the directory is there
		w.sequence(path, r)
		w.faulty = w.now()
		ask()
		for range 4 {
			w.after(time.Microsecond, ask)
		}
	})
}
