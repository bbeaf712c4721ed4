package requests

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

// A whole is acquired, perhaps in vain at first, and then lost or released. Its parts are granted
// and answer in any order, and are lost at any time.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Parts[int]
		n := rapid.IntRange(1, 4).Draw(t, "parts")
		sometimes := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
		wantStage := func(want PartsStage, missing int, why Reason) {
			if err := p.Check(); err != nil || p.Stage() != want || p.Missing() != missing || p.Reason() != why {
				t.Fatalf("stage %d, %d are missing, reason %v; want stage %d, %d and %v: %v", p.Stage(), p.Missing(), p.Reason(), want, missing, why, err)
			}
		}
		lose := func(want PartsStage) Reason {
			why := rapid.SampledFrom([]Reason{SessionLost, NodeDeleted, Closed}).Draw(t, "reason")
			if got := p.PartLost(why); got != want {
				t.Fatalf("a part was lost in stage %d, want %d", got, want)
			}
			return why
		}
		revoked := false
		perhapsRevoke := func(held bool) {
			if sometimes("revoked") {
				revoked = true
				if got := p.Revoke(); got != held {
					t.Fatalf("Revoke returns %v, and the whole is held: %v", got, held)
				}
			}
			if p.Revoked() != revoked {
				t.Fatalf("another client has asked for a part: %v, want %v", p.Revoked(), revoked)
			}
		}
		acquire := func() {
			p.Acquire(n)
			revoked = false
		}
		drawOrder := func() []int { return rapid.Permutation(numbers(n)).Draw(t, "order") }

		wantStage(Unasked, 0, 0)
		for range rapid.IntRange(0, 2).Draw(t, "attempts in vain") {
			acquire()
			for _, i := range drawOrder()[1:] {
				perhapsRevoke(false)
				p.Granted(i, -1)
			}
			perhapsRevoke(false)
			lose(Acquiring)
			wantStage(Acquiring, 1, 0)
		}
		acquire()
		var all []int
		for granted, i := range drawOrder() {
			wantStage(Acquiring, n-granted, 0)
			perhapsRevoke(false)
			if all != nil {
				t.Fatalf("the whole is granted by %d of %d", granted, n)
			}
			all = p.Granted(i, i)
		}
		wantStage(Held, 0, 0)
		for i := range n {
			if len(all) != n || all[i] != i {
				t.Fatalf("the grants of %d parts are %v", n, all)
			}
		}
		perhapsRevoke(true)
		if sometimes("lost") {
			lose(Held)
			wantStage(Held, 0, 0)
			return
		}
		p.Release()
		perhapsRevoke(false)
		var why Reason
		for answered := range n {
			wantStage(Releasing, 0, why)
			if sometimes("lost during the release") {
				why = cmp.Or(why, lose(Releasing))
				wantStage(Releasing, 0, why)
			}
			answer := rapid.SampledFrom([]Reason{0, NotHeld}).Draw(t, "answer")
			why = cmp.Or(why, answer)
			if last := p.ReleaseAnswered(answer); last != (answered == n-1) {
				t.Fatalf("after %d of %d answers: %v", answered+1, n, last)
			}
		}
		if p.Reason() != why {
			t.Fatalf("the reason is %v, want %v", p.Reason(), why)
		}
	})
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// A part is lost while the whole is being released: the loss is no answer to the release, and
// Reason returns its reason.
func TestPartLostDuringRelease(t *testing.T) {
	var p Parts[int]
	p.Acquire(2)
	p.Granted(1, 1)
	p.Granted(0, 0)
	p.Release()
	if stage := p.PartLost(NodeDeleted); stage != Releasing || p.Stage() != Releasing {
		t.Errorf("stage %d, then %d", stage, p.Stage())
	}
	if p.ReleaseAnswered(NotHeld) || !p.ReleaseAnswered(0) {
		t.Error("the loss counts as an answer")
	}
	if p.Reason() != NodeDeleted {
		t.Errorf("the reason is %v", p.Reason())
	}
}

// Check returns an error if not all parts are asked for, or if there is a reason before the
// release.
func TestPartsCheck(t *testing.T) {
	for _, p := range []Parts[int]{
		{stage: Acquiring}, {grants: make([]int, 1)}, {stage: Acquiring, grants: make([]int, 1)}, {stage: Releasing, grants: make([]int, 1), open: 2},
		{stage: Held, grants: make([]int, 1), open: 1}, {stage: Held, grants: make([]int, 1), reason: Closed},
	} {
		if p.Check() == nil {
			t.Errorf("Check finds nothing wrong with %+v", p)
		}
	}
}
