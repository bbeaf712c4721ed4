package simulation

import (
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

// The open requests of a process, and its counts.

// checkCounts looks whether a process counts the requests that wait and hold. It may count more: those
// that the program has dropped, and those whose answer nothing reads.
func (w *world) checkCounts() {
	for _, p := range w.slots {
		if p == nil || !p.isUp() || p.frozen {
			continue
		}
		waits, held := 0, 0
		for _, r := range w.open {
			switch {
			case r.p != p || r.leaving || r.dropped:
			case r.state == waiting && !isDone(r.future.Done()):
				waits++
			case r.state == holds && r.grant.Err() == nil:
				held++
			}
		}
		if s := p.locks.Stats(); s.Waiting < waits || s.Held < held {
			w.fail(w.now(), "%s has %d requests that wait and %d grants, and counts %d and %d", p.name, waits, held, s.Waiting, s.Held)
		}
	}
}

// checkHeldHere looks whether the lock knows of the grant.
func (r *programRequest) checkHeldHere() {
	var owners []actors.Owner
	if r.named {
		owners = append(owners, actors.Owner(r.owner))
	}
	lock, ok := r.lock.(interface{ HeldHere(...actors.Owner) bool })
	if ok && r.grant.Err() == nil && !lock.HeldHere(owners...) {
		r.w.fail(r.w.now(), "%v: HeldHere says that it does not hold", r)
	}
}

// leftOpen tells what a process with no open requests has left.
func (p *process) leftOpen() (all []string) {
	if p == nil || !p.isUp() {
		return nil
	}
	for _, r := range p.locks.Open() {
		all = append(all, fmt.Sprintf("%s has a request for %s, %s since %v", p.name, r.Path, r.State, r.Since.Sub(p.w.start)))
	}
	if s := p.locks.Stats(); s.Waiting != 0 || s.Held != 0 {
		all = append(all, fmt.Sprintf("%s counts %d that wait and %d that hold", p.name, s.Waiting, s.Held))
	}
	return all
}
