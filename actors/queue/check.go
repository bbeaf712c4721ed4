package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// MaxKinds is how many kinds a KindSet can hold.
const MaxKinds = 64

// Check returns an error that says what is wrong with a custom rule whose kinds have the given
// names, or nil. Such a rule has neither Delay nor CountUnknown; Reenter may be empty.
func (r Rule) Check(kinds []string) error {
	switch {
	case len(kinds) == 0 || len(kinds) > MaxKinds:
		return fmt.Errorf("%d kinds: it must be 1 to %d", len(kinds), MaxKinds)
	case r.Permits < 1:
		return fmt.Errorf("Permits %d: it must be at least 1", r.Permits)
	case len(r.BlockedBy) != len(kinds):
		return fmt.Errorf("%d sets in BlockedBy: it must be one for each of the %d kinds", len(r.BlockedBy), len(kinds))
	case len(r.Markers) != len(kinds):
		return fmt.Errorf("%d Markers: it must be one for each of the %d kinds", len(r.Markers), len(kinds))
	case len(r.Reenter) != 0 && len(r.Reenter) != len(kinds):
		return fmt.Errorf("%d sets in Reenter: it must be none, or one for each of the %d kinds", len(r.Reenter), len(kinds))
	case r.Delay:
		return errors.New("Delay: only a mutex can have one")
	case r.CountUnknown:
		return errors.New("CountUnknown: only a semaphore's leases can have it")
	}
	for _, check := range []func(Rule, Kind, []string) error{Rule.checkKind, Rule.checkMarker, Rule.checkReenter} {
		for k, name := range kinds {
			if err := check(r, Kind(k), kinds); err != nil {
				return fmt.Errorf("kind %q: %w", name, err)
			}
		}
	}
	return nil
}

func (r Rule) checkKind(k Kind, kinds []string) error {
	marker := r.Markers[k]
	switch {
	case kinds[k] == "":
		return fmt.Errorf("number %d must have a name", k)
	case slices.Index(kinds, kinds[k]) != int(k):
		return errors.New("it is there twice")
	case !strings.ContainsFunc(marker, unicode.IsLetter):
		return fmt.Errorf("marker %q: it must have a letter", marker)
	case strings.Contains(marker, "/"):
		return fmt.Errorf("marker %q: it must not have a slash", marker)
	}
	return r.BlockedBy[k].within(len(kinds), "BlockedBy")
}

// checkMarker checks that the names of the kind are not taken for those of another.
func (r Rule) checkMarker(k Kind, kinds []string) error {
	marker := r.Markers[k]
	for other, m := range r.Markers {
		// A minus at its end may as well belong to a sequence number.
		if Kind(other) != k && strings.HasSuffix(strings.TrimSuffix(marker, "-"), strings.TrimSuffix(m, "-")) {
			return fmt.Errorf("marker %q ends as %q does, that of %q: their nodes could not be told apart", marker, m, kinds[other])
		}
	}
	return nil
}

func (r Rule) checkReenter(k Kind, kinds []string) error {
	if len(r.Reenter) == 0 {
		return nil
	}
	for held := range kinds {
		if r.Reenter[k].Has(Kind(held)) && !r.MayEnter(k, Kind(held)) {
			return fmt.Errorf("Reenter has %q: it needs Permits 1, and a %q may block only what a %q blocks, and be blocked only by what blocks a %q", kinds[held], kinds[k], kinds[held], kinds[held])
		}
	}
	return r.Reenter[k].within(len(kinds), "Reenter")
}

// MayEnter reports whether a holder of the kind held may come to hold as k at the same place: if k
// blocks only kinds that held blocks, and is blocked only by kinds that block held.
func (r Rule) MayEnter(k, held Kind) bool {
	if k == held {
		return true
	}
	for _, by := range r.BlockedBy {
		if by.Has(k) && !by.Has(held) {
			return false
		}
	}
	return r.Permits == 1 && r.BlockedBy[k]&^r.BlockedBy[held] == 0
}

// within returns an error that names a kind in the set that does not exist.
func (s KindSet) within(kinds int, field string) error {
	for k := kinds; k < MaxKinds; k++ {
		if s.Has(Kind(k)) {
			return fmt.Errorf("%s has kind %d: there are %d kinds, from 0", field, k, kinds)
		}
	}
	return nil
}
