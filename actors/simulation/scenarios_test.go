package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Histories that need several things within moments of each other.

// askInMissing has a process ask at once for a lock whose directory is there and for one whose
// directory the operator has deleted, and for the first again before there can be an answer.
func (w *world) askInMissing(e entry) {
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen || w.operator.open.Load() > 0 {
		return
	}
	const there, missing = root + "/m0", root + "/rw"
	w.operator.do(func() { w.line("operator deletes %s: %v", missing, w.operator.conn.Delete(missing, -1)) })
	w.after(20*time.Millisecond+time.Duration(r.Int64N(int64(20*time.Millisecond))), func() {
		w.askAt(p, r, there, "op plain")
		w.askAt(p, r, missing, "op plain")
		w.after(time.Duration(r.Int64N(int64(2*p.host.far+2*time.Millisecond))), func() { w.askAt(p, r, there, "op plain") })
	})
}

// askReaders has readers of two processes hold together. The one that came first leaves, and the other
// one's process does not notice. When that leaves, too, a try for the writer comes at once.
func (w *world) askReaders(e entry) {
	p, q, r := w.slots[e.slot], w.slots[(e.slot+1)%len(w.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(w.open) > 0 {
		return
	}
	read := func(p *process, hold time.Duration) *programRequest {
		old := w.newRequest(p, r)
		lock := p.locks.RWMutex(root + "/rw")
		old.uses = []use{{root + "/rw", 0, 1}}
		old.send("op plain", lock.Read())
		old.hold = hold
		return old
	}
	rtt := 2*p.host.far + 2*q.host.far + 10*time.Millisecond
	read(q, rtt+time.Duration(r.Int64N(int64(100*time.Millisecond))))
	w.after(rtt, func() {
		read(p, time.Second+rtt).then = func() {
			again := w.newRequest(p, r)
			lock := p.locks.RWMutex(root + "/rw")
			again.uses, again.try = []use{{root + "/rw", 0, allReaders}}, true
			again.send("op again", lock.Write(), actors.Try())
		}
	})
}

// askFour has a process ask for a lock four times within moments, so that three transactions are in
// flight, after the operator has deleted the session node. The process has a contender for the
// lock already.
func (w *world) askFour(e entry) {
	const path = root + "/m0"
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(w.open) > 3 { // it takes seconds
		return
	}
	first := w.askAt(p, r, path, "op plain")
	first.hold = 4 * time.Second
	own := fmt.Sprintf("session-%016x", uint64(p.session))
	w.after(time.Second, func() {
		w.operator.do(func() {
			w.operator.deleteOne(zkbridge.GenerationDirectory, r, func(name string) bool { return name == own })
		})
	})
	for _, pause := range []time.Duration{0, 3, 6, 6} {
		w.after(2500*time.Millisecond+pause*time.Millisecond, func() { w.askAt(p, r, path, "op plain") })
	}
}

// replaceAfter replaces the directory of a mutex that was released, while the answer to the release is
// on its way. The new contenders are the operator's, and have all numbers of the earlier ones. Then the
// process asks for the mutex again.
func (w *world) replaceAfter(old *programRequest) {
	p, directory := old.p, old.path
	marker := markers[directory]
	if marker == "" || old.multi {
		return
	}
	p.replaces = false
	w.faulty = w.now()
	p.disturb(3 * time.Second)
	p.host.answerLate(400 * time.Millisecond)
	w.lasting(600*time.Millisecond, func() { p.host.answerLate(0) })
	node, o := old.grant.Node(), w.operator
	w.after(2*p.host.far+5*time.Millisecond, func() {
		o.do(func() {
			children, _, err := o.conn.Children(directory)
			last := int64(0)
			for _, name := range append(slices.Clone(children), node) {
				last = max(last, sequence(name))
			}
			numbers := int(1 + last)
			if last >= 40 { // the next one is to be small again
				numbers = 1
			}
			if err == nil {
				o.replace(directory, marker, children, numbers, p.hides, old.rand)
			}
		})
	})
	w.after(2*p.host.far+30*time.Millisecond, func() { w.askAt(p, old.rand, directory, "op plain") })
}

// turn raises the generation, and has the last contender of a directory deleted again and again
// meanwhile.
func (w *world) turn(p *process, r *rand.Rand) {
	directory := w.busyDirectory(r)
	w.raise(p)
	for range 8 {
		w.after(time.Duration(r.Int64N(int64(6*p.host.far+10*time.Millisecond))), func() {
			w.operator.do(func() { w.operator.deleteLast(directory) })
		})
	}
}

func (o *operator) deleteLast(directory string) {
	children, _, err := o.conn.Children(directory)
	if err == nil && len(children) > 0 {
		o.deleteNode(directory + "/" + slices.MaxFunc(children, func(a, b string) int { return int(sequence(a) - sequence(b)) }))
	}
}

// askBehindLost has a process ask for a mutex near the end of its numbers, and lose the answer to the
// create. The process asks again before it is connected again, and before it has found the first node.
func (w *world) askBehindLost(e entry) {
	const path = root + "/m0"
	p, r := w.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(w.open) > 3 {
		return
	}
	w.askAt(p, r, path, "op plain")
	w.after(6*p.host.far+10*time.Millisecond, func() { // the directory is there now
		w.sequence(path, r)
		w.faulty = w.now()
		p.disturb(3*time.Second + w.plan.session)
		lost := w.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: p.session, Action: embedded.DropReply})
		w.lasting(w.plan.session, lost.Remove)
		w.askAt(p, r, path, "op plain")
		w.whenFired(lost, func() {
			w.after(p.host.far+time.Duration(r.Int64N(int64(20*time.Millisecond))), func() {
				if again := w.askAt(p, r, path, "op plain"); again != nil {
					again.hold = time.Second
				}
			})
		})
	})
}

// whenFired calls do soon after a fault has fired for the first time.
func (w *world) whenFired(i *embedded.Injected, do func()) {
	if isDone(i.Fired()) {
		do()
	} else if !w.healing {
		w.after(time.Millisecond, func() { w.whenFired(i, do) })
	}
}

// askAfterList has a process ask for a mutex in the moment in which it lists the contenders, and the
// operator delete all of these, which the answer to the create has shown, before the server reads the
// list. Another process asks when the list is on its way.
func (w *world) askAfterList(e entry) {
	const path, late = root + "/m0", 400 * time.Millisecond
	p, q, r := w.slots[e.slot], w.slots[(e.slot+1)%len(w.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(w.open) > 0 {
		return
	}
	if p.host.far < q.host.far {
		p, q = q, p
	}
	// The proof of the third one is of no use any more when the second one releases, since two ticks have
	// passed; and a list proves the nodes of several at once.
	long := w.askAt(p, r, path, "op plain")
	second := w.askAt(p, r, path, "op plain")
	for range 2 {
		w.askAt(p, r, path, "op plain")
	}
	long.hold, second.hold = 3500*time.Millisecond, time.Millisecond
	second.then = func() {
		w.faulty = w.now()
		slow := w.server.Inject(embedded.Fault{Op: embedded.OpGetChildren2, Session: p.session, Action: embedded.DelayRequest, Delay: late})
		w.lasting(2*time.Second, slow.Remove)
		w.askAt(p, r, path, "op plain")
		w.whenFired(slow, func() {
			w.operator.do(func() { w.operator.deleteAll(path) })
			w.after(late+time.Duration(r.Int64N(int64(p.host.far/4+time.Millisecond))), func() { w.askAt(q, r, path, "op plain") })
		})
	}
}

func (o *operator) deleteAll(directory string) {
	children, _, _ := o.conn.Children(directory)
	slices.Sort(children)
	for _, name := range children {
		o.deleteNode(directory + "/" + name)
	}
}

// leaveUnresolved keeps the next create of a process on its way for long, and cuts the connection. If
// forLong is set, the process hears nothing of the create until the bridge ends its search.
func (w *world) leaveUnresolved(p *process, forLong bool) {
	session, timeout := p.session, w.plan.session
	p.disturb(12 * timeout)
	delayed := w.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: session, Action: embedded.DelayRequest, Delay: 9 * timeout})
	over := false
	w.lasting(9*timeout, func() {
		over = true
		delayed.Remove()
	})
	var cut func()
	cut = func() {
		switch {
		case over:
		case len(delayed.Firings()) == 0:
			w.after(50*time.Millisecond, cut)
		default:
			p.host.cut()
			if forLong {
				// Only transactions: the bridge takes a read for unknown on which servers hang up again and again.
				cuts := w.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: session, Times: -1, Action: embedded.CutBefore})
				w.lasting(timeout*9/2, cuts.Remove)
			}
		}
	}
	cut()
}
