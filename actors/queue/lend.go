package queue

// What a Lender decides.

// proceed does what is possible now: lends, borrows, gives back.
func (l *Lender) proceed() {
	for l.waiting.first != nil && l.serve(l.waiting.first) {
	}
	switch {
	case l.waiting.first != nil || len(l.holders) > 0:
	case l.loan.stage == creating || l.loan.wanted:
		l.giveBack()
	case l.unused() && !l.timing:
		l.linger()
	}
}

// serve is for the first in line. It tells that something has changed, so that it is
// worth to look again.
func (l *Lender) serve(b *borrower) bool {
	switch {
	case l.loan.stage == unsent:
		l.borrow(b)
		return false
	case l.loan.stage == creating || l.blocked(b.kind):
		return false
	case !l.spent() && l.covers(b.kind):
		l.grant(b)
		return true
	case len(l.holders) > 0:
		return false
	}
	l.giveBack() // and queue again
	return true
}

// blocked tells that those who hold keep one of a kind from holding beside them.
func (l *Lender) blocked(kind Kind) bool {
	for _, b := range l.holders {
		if l.rule.BlockedBy[kind].Has(b.kind) {
			return true
		}
	}
	return false
}

// covers tells that the loan does for a kind: it stands in the way of all that one of
// the kind would stand in the way of, and has waited for all that that would wait for.
func (l *Lender) covers(kind Kind) bool {
	have := l.loan.kind
	for _, blockers := range l.rule.BlockedBy {
		if blockers.Has(kind) && !blockers.Has(have) {
			return false
		}
	}
	return l.rule.BlockedBy[kind]&^l.rule.BlockedBy[have] == 0
}

// spent tells that the loan may not be lent once more.
func (l *Lender) spent() bool {
	return l.loan.lent == mostLent || l.loan.wanted && (l.loan.over || l.loan.lent >= l.grants)
}

// unused tells that the loan is here for nobody.
func (l *Lender) unused() bool {
	return l.loan.stage == held && len(l.holders) == 0 && l.waiting.first == nil
}

func (l *Lender) borrow(b *borrower) {
	l.serials++
	l.loan = loan{stage: creating, serial: l.serials, kind: b.kind}
	l.effect(Effect{Do: DoBorrow, Serial: l.serials, Kind: b.kind, Try: b.onlyTries(), Data: b.data})
}

func (l *Lender) giveBack() {
	if l.loan.stage != unsent {
		l.effect(Effect{Do: DoReturn, Serial: l.loan.serial})
		l.loan = loan{}
	}
}

// linger keeps the loan for a while. A timer runs from the first time of that; it is
// not stopped when the loan is used, but runs once more if the loan was.
func (l *Lender) linger() {
	l.timing, l.fresh = true, true
	l.effect(Effect{Do: DoLinger})
}

func (l *Lender) grant(b *borrower) {
	l.waiting.remove(b)
	l.holders = append(l.holders, b)
	l.fresh = false
	b.stage, b.step = held, l.loan.step<<lentBits|l.loan.lent
	l.loan.lent++
	for i := range b.requests {
		l.grantRequest(b, i)
	}
}

func (l *Lender) grantRequest(b *borrower, i int) {
	r := &b.requests[i]
	r.try = false
	l.effect(Effect{Do: DoGrant, ID: r.id, Czxid: l.loan.czxid, Step: b.step})
	if l.loan.wanted {
		l.tell(r)
	}
}

func (l *Lender) tell(r *request) {
	if r.tell {
		r.tell = false
		l.effect(Effect{Do: DoContended, ID: r.id})
	}
}

// lose ends all grants.
func (l *Lender) lose(why Why) {
	for _, b := range l.holders {
		b.stage, b.why = lost, why
		for _, r := range b.requests {
			l.effect(Effect{Do: DoLose, ID: r.id, Why: why})
			if b.owner == "" {
				delete(l.requests, r.id)
			}
		}
	}
	clear(l.holders)
	l.holders = l.holders[:0]
}
