package localqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// What a Lender decides.

// proceed does what is possible now: lends, borrows, gives back.
func (l *Queue) proceed() {
	for l.waiting.first != nil && l.serve(l.waiting.first) || l.shrink() {
	}
	switch {
	case l.waiting.first != nil || len(l.holders) > 0:
	case l.loan.stage == creating || l.wanted():
		l.giveBack()
	case l.unused() && !l.timing:
		l.linger()
	}
}

// serve is for the first in line. It tells that something has changed, so that it is
// worth to look again.
func (l *Queue) serve(b *borrower) bool {
	switch {
	case l.loan.stage == unsent:
		l.loan = loan{part: l.borrow(b.kind, b.data, b.onlyTries())}
		l.loan.id = l.loan.serial
		return false
	case l.loan.stage == creating || l.blocked(b.kind):
		return false
	case l.lends(b.kind):
		if !l.ready(b.kind, b.data) {
			return false
		}
		l.grant(b)
		return true
	case len(l.holders) > 0:
		l.refuseTries()
		return false
	}
	l.giveBack() // and queue again
	return true
}

// blocked tells that those who hold keep one of a kind from holding beside them.
func (l *Queue) blocked(kind queue.Kind) bool { return l.holding.has(l.rule.BlockedBy[kind]) }

// taken tells that one who comes now would have to wait for others of this process, or
// wait as long as others do who wait for other processes.
func (l *Queue) taken(kind queue.Kind) bool {
	blockers := l.rule.BlockedBy[kind]
	return l.holding.has(blockers) || l.waiting.kinds.has(blockers) || l.loan.stage == creating && !l.loan.try
}

// lends tells that the loan may be lent for a kind once more, as far as others go.
func (l *Queue) lends(kind queue.Kind) bool { return l.covers(kind) && l.numbered(kind) && !l.spent() }

// covers tells that the loan does for a kind: it stands in the way of all that one of
// the kind would stand in the way of, and has waited for all that that would wait for.
func (l *Queue) covers(kind queue.Kind) bool {
	have := l.loan.kind
	for _, blockers := range l.rule.BlockedBy {
		if blockers.Has(kind) && !blockers.Has(have) {
			return false
		}
	}
	return l.rule.BlockedBy[kind]&^l.rule.BlockedBy[have] == 0 && (!l.apart(kind) || l.loan.beside.stage != lost)
}

// apart tells that a kind is to have a part of its own, beside the first.
func (l *Queue) apart(kind queue.Kind) bool {
	return kind != l.loan.kind && l.rule.EntersFrom(kind).Has(l.loan.kind)
}

// ready tells that the part by which one of a kind is to hold is here. If not, it has
// been asked for, or is now.
func (l *Queue) ready(kind queue.Kind, data []byte) bool {
	if !l.apart(kind) {
		return true
	}
	if l.loan.beside.stage == unsent {
		l.loan.beside = l.borrow(kind, data, false)
	}
	return l.loan.beside.stage == held
}

// by is the part by which one of a kind holds.
func (l *Queue) by(kind queue.Kind) *part {
	if l.apart(kind) {
		return &l.loan.beside
	}
	return &l.loan.part
}

// shrink gives the first part up when only what is beside it is in use, others wait for
// it, and nobody here is to have it soon. It tells if that was so.
func (l *Queue) shrink() bool {
	first, beside := &l.loan.part, &l.loan.beside
	if !l.holding.has(queue.Kinds(beside.kind)) || beside.stage != held || !first.wanted || l.waiting.first != nil && !l.spent() {
		return false
	}
	l.effect(Effect{Kind: ReleaseNode, Serial: first.serial})
	*first, *beside = *beside, part{}
	return true
}

// numbered tells that there is a number for a grant: one of its own, or that of others
// which it does not block.
func (l *Queue) numbered(kind queue.Kind) bool {
	return l.loan.lent < mostLent || !l.rule.BlockedBy[kind].Has(l.loan.last)
}

// spent tells that others wait and have waited for long enough.
func (l *Queue) spent() bool {
	return l.wanted() && (l.loan.over || l.loan.lent >= l.grants)
}

func (l *Queue) wanted() bool { return l.loan.wanted || l.loan.beside.wanted }

// unused tells that the loan is here for nobody.
func (l *Queue) unused() bool {
	return l.loan.stage == held && len(l.holders) == 0 && l.waiting.first == nil
}

// borrow asks for a part.
func (l *Queue) borrow(kind queue.Kind, data []byte, try bool) part {
	l.serials++
	l.effect(Effect{Kind: AcquireNode, Serial: l.serials, NodeKind: kind, Try: try, Data: data})
	return part{stage: creating, serial: l.serials, kind: kind, try: try}
}

func (l *Queue) giveBack() {
	for _, serial := range l.NodeHolds() {
		l.effect(Effect{Kind: ReleaseNode, Serial: serial})
	}
	l.loan = loan{}
}

// linger keeps the loan for a while. A timer runs from the first time of that; it is
// not stopped when the loan is used, but runs once more if the loan was.
func (l *Queue) linger() {
	l.timing, l.fresh = true, true
	l.effect(Effect{Kind: StartIdleTimer})
}

func (l *Queue) grant(b *borrower) {
	l.waiting.remove(b)
	l.hold(b)
	l.fresh = false
	b.stage, b.step = held, l.loan.step<<lentBits|min(l.loan.lent, mostLent-1)
	l.loan.lent, l.loan.last = min(l.loan.lent+1, mostLent), b.kind
	for i := range b.requests {
		l.grantRequest(b, i)
	}
}

func (l *Queue) grantRequest(b *borrower, i int) {
	r := &b.requests[i]
	if r.try {
		r.try = false
		l.tries--
	}
	l.effect(Effect{Kind: Grant, ID: r.id, Serial: l.by(r.kind).serial, Generation: l.loan.generation, Czxid: l.loan.czxid, Step: b.step})
	if l.wanted() {
		l.tell(r)
	}
}

// enter grants what holders have asked for beside what they hold, if that is here.
func (l *Queue) enter() {
	if l.loan.beside.stage != held {
		return
	}
	for _, b := range l.holders {
		for i := range b.requests {
			if r := &b.requests[i]; r.enters {
				r.enters = false
				l.grantRequest(b, i)
			}
		}
	}
}

// turnAway refuses what holders have asked for beside what they hold.
func (l *Queue) turnAway(why requests.Reason) {
	for _, b := range slices.Clone(l.holders) {
		for _, r := range slices.Clone(b.requests) {
			if r.enters {
				l.refuse(r.id, why)
				l.drop(b, r.id)
			}
		}
	}
}

func (l *Queue) tell(r *request) {
	if r.tell && !r.enters {
		r.tell = false
		l.effect(Effect{Kind: NotifyContended, ID: r.id})
	}
}

// lose ends all grants.
func (l *Queue) lose(why requests.Reason) {
	l.turnAway(why)
	for _, b := range l.holders {
		b.stage, b.why = lost, why
		for _, r := range b.requests {
			l.effect(Effect{Kind: Lose, ID: r.id, Reason: why})
			if b.owner == "" {
				l.requests.Remove(r.id)
			}
		}
	}
	clear(l.holders)
	clear(l.holding)
	l.holders = l.holders[:0]
}
