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

// Scenarios: several operations and faults within moments of each other.

// acquireInMissingDirectory has a process request a lock whose directory exists and a lock whose
// directory the operator has just deleted, and the first one again before there can be an answer.
func (sim *simulation) acquireInMissingDirectory(e entry) {
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen || sim.operator.openTasks.Load() > 0 {
		return
	}
	const existing, missing = root + "/m0", root + "/rw"
	sim.operator.do(func() { sim.record("operator deletes %s: %v", missing, sim.operator.conn.Delete(missing, -1)) })
	sim.after(20*time.Millisecond+time.Duration(r.Int64N(int64(20*time.Millisecond))), func() {
		sim.acquireAt(p, r, existing, "op plain")
		sim.acquireAt(p, r, missing, "op plain")
		sim.after(time.Duration(r.Int64N(int64(2*p.host.maxDelay+2*time.Millisecond))), func() { sim.acquireAt(p, r, existing, "op plain") })
	})
}

// tryAfterReaders has readers of two processes hold together. The earlier reader leaves, which the
// other process does not notice. At the release of the second reader its process tries to write.
func (sim *simulation) tryAfterReaders(e entry) {
	p, q, r := sim.slots[e.slot], sim.slots[(e.slot+1)%len(sim.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(sim.requests) > 0 {
		return
	}
	read := func(p *process, hold time.Duration) *programRequest {
		old := sim.newRequest(p, r)
		lock := p.locks.RWMutex(root + "/rw")
		old.uses = []use{{root + "/rw", 0, 1}}
		old.send("op plain", lock.Read())
		old.holdTime = hold
		return old
	}
	rtt := 2*p.host.maxDelay + 2*q.host.maxDelay + 10*time.Millisecond
	read(q, rtt+time.Duration(r.Int64N(int64(100*time.Millisecond))))
	sim.after(rtt, func() {
		read(p, time.Second+rtt).onRelease = func() {
			again := sim.newRequest(p, r)
			lock := p.locks.RWMutex(root + "/rw")
			again.uses, again.try = []use{{root + "/rw", 0, rwCapacity}}, true
			again.send("op again", lock.Write(), actors.Try())
		}
	})
}

// acquireFourTimes has a process request a lock four times within moments, so that three
// transactions are in flight, after the operator has deleted the session node. The process already
// has a contender for the lock.
func (sim *simulation) acquireFourTimes(e entry) {
	const path = root + "/m0"
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(sim.requests) > 3 { // the scenario takes seconds
		return
	}
	first := sim.acquireAt(p, r, path, "op plain")
	first.holdTime = 4 * time.Second
	sessionNode := fmt.Sprintf("session-%016x", uint64(p.session))
	sim.after(time.Second, func() {
		sim.operator.do(func() {
			sim.operator.deleteOne(zkbridge.GenerationDirectory, r, func(name string) bool { return name == sessionNode })
		})
	})
	for _, pause := range []time.Duration{0, 3, 6, 6} {
		sim.after(2500*time.Millisecond+pause*time.Millisecond, func() { sim.acquireAt(p, r, path, "op plain") })
	}
}

// replaceDirectoryAfter replaces the directory of a released mutex while the answer to the release
// is on its way. The operator's contenders in the new directory have all numbers of the earlier
// ones. Then the process requests the mutex again.
func (sim *simulation) replaceDirectoryAfter(old *programRequest) {
	p, directory := old.p, old.path
	marker := contenderMarkers[directory]
	if marker == "" || old.multi {
		return
	}
	p.replaceNext = false
	sim.lastFault = sim.now()
	p.markAffected(3 * time.Second)
	p.host.setExtraAnswerDelay(400 * time.Millisecond)
	sim.undoAfter(600*time.Millisecond, func() { p.host.setExtraAnswerDelay(0) })
	node, o := old.grant.Node(), sim.operator
	sim.after(2*p.host.maxDelay+5*time.Millisecond, func() {
		o.do(func() {
			children, _, err := o.conn.Children(directory)
			last := int64(0)
			for _, name := range append(slices.Clone(children), node) {
				last = max(last, sequenceOf(name))
			}
			numbers := int(1 + last)
			if last >= 40 { // the next number is to be small again
				numbers = 1
			}
			if err == nil {
				sim.withState(func() { // the operator may have had other work since
					sim.lastFault = sim.now()
					p.markAffected(3 * time.Second)
				})
				o.replace(directory, marker, children, numbers, p.hideReplaced, old.rand)
			}
		})
	})
	sim.after(2*p.host.maxDelay+30*time.Millisecond, func() { sim.acquireAt(p, old.rand, directory, "op plain") })
}

// raiseAndDelete raises the generation, and meanwhile has the last contender of a directory deleted
// again and again.
func (sim *simulation) raiseAndDelete(p *process, r *rand.Rand) {
	directory := sim.directoryInUse(r)
	sim.raiseGeneration(p)
	for range 8 {
		sim.after(time.Duration(r.Int64N(int64(6*p.host.maxDelay+10*time.Millisecond))), func() {
			sim.operator.do(func() { sim.operator.deleteLast(directory) })
		})
	}
}

func (o *operator) deleteLast(directory string) {
	children, _, err := o.conn.Children(directory)
	if err == nil && len(children) > 0 {
		o.deleteNode(directory + "/" + slices.MaxFunc(children, func(a, b string) int { return int(sequenceOf(a) - sequenceOf(b)) }))
	}
}

// acquireAfterLostReply has a process request a mutex near the end of its numbers, and lose the
// answer to the create. The process makes another request before it is connected again and has
// found the first node.
func (sim *simulation) acquireAfterLostReply(e entry) {
	const path = root + "/m0"
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(sim.requests) > 3 {
		return
	}
	sim.acquireAt(p, r, path, "op plain")
	sim.after(6*p.host.maxDelay+10*time.Millisecond, func() { // the directory exists now
		sim.advanceCounter(path, r)
		sim.lastFault = sim.now()
		p.markAffected(3*time.Second + sim.plan.sessionTimeout)
		lost := sim.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: p.session, Action: embedded.DropReply})
		sim.undoAfter(sim.plan.sessionTimeout, lost.Remove)
		sim.acquireAt(p, r, path, "op plain")
		sim.onFired(lost, func() {
			sim.after(p.host.maxDelay+time.Duration(r.Int64N(int64(20*time.Millisecond))), func() {
				if again := sim.acquireAt(p, r, path, "op plain"); again != nil {
					again.holdTime = time.Second
				}
			})
		})
	})
}

// onFired calls do soon after a fault has fired for the first time.
func (sim *simulation) onFired(i *embedded.Injected, do func()) {
	if isDone(i.Fired()) {
		do()
	} else if !sim.faultsOver {
		sim.after(time.Millisecond, func() { sim.onFired(i, do) })
	}
}

// acquireDuringList has a process request a mutex while it lists the contenders. The answer to the
// create shows the contenders ahead, and the operator deletes all of these before the server reads
// the list. Another process requests the mutex while the list is on its way.
func (sim *simulation) acquireDuringList(e entry) {
	const path, late = root + "/m0", 400 * time.Millisecond
	p, q, r := sim.slots[e.slot], sim.slots[(e.slot+1)%len(sim.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(sim.requests) > 0 {
		return
	}
	if p.host.maxDelay < q.host.maxDelay {
		p, q = q, p
	}
	// The proof of the third request is too old when the second one releases, since two ticks have
	// passed. And a list proves the nodes of several requests at once.
	long := sim.acquireAt(p, r, path, "op plain")
	second := sim.acquireAt(p, r, path, "op plain")
	for range 2 {
		sim.acquireAt(p, r, path, "op plain")
	}
	long.holdTime, second.holdTime = 3500*time.Millisecond, time.Millisecond
	second.onRelease = func() {
		sim.lastFault = sim.now()
		slow := sim.server.Inject(embedded.Fault{Op: embedded.OpGetChildren2, Session: p.session, Action: embedded.DelayRequest, Delay: late})
		sim.undoAfter(2*time.Second, slow.Remove)
		sim.acquireAt(p, r, path, "op plain")
		sim.onFired(slow, func() {
			sim.operator.do(func() { sim.operator.deleteAll(path) })
			sim.after(late+time.Duration(r.Int64N(int64(p.host.maxDelay/4+time.Millisecond))), func() { sim.acquireAt(q, r, path, "op plain") })
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

// delayCreate delays the next create of a process for long, and cuts the connection. If cutting is
// set, the connection is cut again and again, until the bridge ends its search for the node.
func (sim *simulation) delayCreate(p *process, cutting bool) {
	session, timeout := p.session, sim.plan.sessionTimeout
	p.markAffected(12 * timeout)
	delayed := sim.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: session, Action: embedded.DelayRequest, Delay: 9 * timeout})
	over := false
	sim.undoAfter(9*timeout, func() {
		over = true
		delayed.Remove()
	})
	var cut func()
	cut = func() {
		switch {
		case over:
		case len(delayed.Firings()) == 0:
			sim.after(50*time.Millisecond, cut)
		default:
			p.host.cut()
			if cutting {
				// Only transactions are cut: the bridge takes a read for an unknown type of request
				// on which servers hang up again and again.
				cuts := sim.server.Inject(embedded.Fault{Op: embedded.OpMulti, Session: session, Times: -1, Action: embedded.CutBefore})
				sim.undoAfter(timeout*9/2, cuts.Remove)
			}
		}
	}
	cut()
}
