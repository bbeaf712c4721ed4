package simulation

import (
	"fmt"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// Checks of Stats, HeldHere and Open.

// checkCounts checks that a process counts its waiting requests and its grants. It may count more:
// requests that the program has dropped, and requests whose answer nothing reads.
func (sim *simulation) checkCounts() {
	for _, p := range sim.slots {
		if p == nil || !p.isUp() || p.frozen {
			continue
		}
		waits, held := 0, 0
		for _, r := range sim.requests {
			switch {
			case r.p != p || r.cancelled || r.dropped:
			case r.stage == stageWaiting && !isDone(r.future.Done()):
				waits++
			case r.stage == stageHeld && r.grant.Err() == nil:
				held++
			}
		}
		if s := p.locks.Stats(); s.Waiting < waits || s.Held < held {
			sim.fail(sim.now(), "%s has %d waiting requests and %d grants, and Stats counts %d and %d", p.name, waits, held, s.Waiting, s.Held)
		}
	}
}

// checkHeldHere checks that the lock knows of the grant.
func (r *programRequest) checkHeldHere() {
	var owners []actors.Owner
	if r.named {
		owners = append(owners, actors.Owner(r.owner))
	}
	lock, ok := r.lock.(interface{ HeldHere(...actors.Owner) bool })
	if ok && r.grant.Err() == nil && !lock.HeldHere(owners...) {
		r.sim.fail(r.sim.now(), "%v: HeldHere returns false", r)
	}
}

// leftOpen returns what a process counts or lists when it has no open requests, and whether it is not
// connected.
func (p *process) leftOpen() (all []string) {
	if p == nil || !p.isUp() {
		return nil
	}
	for _, r := range p.locks.OpenRequests() {
		all = append(all, fmt.Sprintf("%s has a request for %s, %s since %v", p.name, r.Path, r.State, r.Since.Sub(p.sim.start)))
	}
	if s := p.locks.Stats(); s.Waiting != 0 || s.Held != 0 {
		all = append(all, fmt.Sprintf("%s counts %d that wait and %d that hold", p.name, s.Waiting, s.Held))
	}
	if state := p.locks.Session().State; state != messages.SessionState_CONNECTED {
		all = append(all, fmt.Sprintf("%s, which is %v", p.name, state))
	}
	return all
}
