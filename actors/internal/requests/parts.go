package requests

import (
	"cmp"
	"fmt"
)

// Parts are what a request needs all of: the leases of a semaphore, or the members of a multi-lock.
// They are granted one by one, and held, released and lost as a whole. G is the grant of one part.
// The zero Parts are Unasked.
type Parts[G any] struct {
	stage  PartsStage
	grants []G    // by part, the zero G for a part that is not granted; empty while Unasked
	open   int    // Acquiring: parts that are not granted; Releasing: releases that are not answered; otherwise 0
	reason Reason // why one part was not released; 0 unless Releasing
	// revoked is set once another client has asked for a part, until Acquire.
	revoked bool
}

// PartsStage is how far the whole has come.
type PartsStage uint8

// The stages of the whole, in their order.
const (
	Unasked   PartsStage = iota
	Acquiring            // all parts are asked for, and one at least is not granted
	Held                 // all parts are granted
	Releasing            // the release of each part is asked for, and one at least is not answered
)

// Stage returns how far the whole has come.
func (p *Parts[G]) Stage() PartsStage { return p.stage }

// Reason returns the first reason for which a part was not released; or 0.
func (p *Parts[G]) Reason() Reason { return p.reason }

// Missing returns how many parts are asked for and not granted.
func (p *Parts[G]) Missing() int {
	if p.stage != Acquiring {
		return 0
	}
	return p.open
}

// Revoke notes that another client asks for a part. It reports whether the whole is Held, so that
// its holder is told at once. While Acquiring the holder is told after the last Granted: see
// Revoked.
func (p *Parts[G]) Revoke() (held bool) {
	p.revoked = true
	return p.stage == Held
}

// Revoked reports whether another client has asked for a part.
func (p *Parts[G]) Revoked() bool { return p.revoked }

// Acquire notes that n parts are asked for, 1 or more. It forgets the parts that were asked for
// before.
func (p *Parts[G]) Acquire(n int) { *p = Parts[G]{stage: Acquiring, grants: make([]G, n), open: n} }

// Granted notes the grant of part i while Acquiring, and returns all grants if it is the last one,
// else nil.
func (p *Parts[G]) Granted(i int, grant G) (all []G) {
	p.grants[i] = grant
	if p.open--; p.open > 0 {
		return nil
	}
	p.stage = Held
	return p.grants
}

// PartLost notes that a part is lost which was granted, though Granted may not have noted that. It
// returns the stage of the whole. If that is Held, the whole is lost: the caller withdraws the
// other parts. While Acquiring the caller acquires all parts anew, or withdraws them. While
// Releasing the loss and the release have crossed: the part's answer is still to come, and may only
// say that there is nothing to release, so Reason returns why and not the reason of that answer.
func (p *Parts[G]) PartLost(why Reason) PartsStage {
	if p.stage == Releasing {
		p.reason = cmp.Or(p.reason, why)
	}
	return p.stage
}

// Release notes that the release of each part is asked for, of a whole that is Held.
func (p *Parts[G]) Release() { p.stage, p.open = Releasing, len(p.grants) }

// ReleaseAnswered notes the answer to the release of one part while Releasing: why it was not
// released, or 0. It reports whether all parts have answered: the whole is over then.
func (p *Parts[G]) ReleaseAnswered(why Reason) (all bool) {
	p.reason = cmp.Or(p.reason, why)
	p.open--
	return p.open == 0
}

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (p *Parts[G]) Check() error {
	asked, counts := p.stage != Unasked, p.stage == Acquiring || p.stage == Releasing
	switch {
	case asked != (len(p.grants) > 0):
		return fmt.Errorf("parts: %d are asked for in stage %d", len(p.grants), p.stage)
	case counts != (p.open > 0), p.open < 0, p.open > len(p.grants):
		return fmt.Errorf("parts: %d of %d are open in stage %d", p.open, len(p.grants), p.stage)
	case p.reason != 0 && p.stage != Releasing:
		return fmt.Errorf("parts: not released because of %v in stage %d", p.reason, p.stage)
	}
	return nil
}
