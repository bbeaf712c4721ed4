package machinetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/sample"
)

// Repeat runs random actions as rapid's Repeat does, but draws another action for one that skips.
// Rapid's Repeat ends a history when two of three actions have skipped, which is mostly after the
// first steps.
func Repeat(t *rapid.T, actions map[string]func(*rapid.T)) {
	check := func(*rapid.T) {}
	if c := actions[""]; c != nil {
		check = c
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(actions)), func(name string) bool { return name == "" })
	t.Repeat(map[string]func(*rapid.T){
		"": check,
		"step": func(t *rapid.T) {
			for range 10 {
				if Act(t, actions[rapid.SampledFrom(names).Draw(t, "action")]) {
					return
				}
			}
		},
	})
}

// Act runs an action and reports whether it did not skip.
func Act(t *rapid.T, action func(*rapid.T)) (done bool) {
	defer func() {
		if r := recover(); r != nil && fmt.Sprintf("%T", r) != "rapid.invalidData" {
			panic(r)
		}
	}()
	action(t)
	return true
}

// GenerationAt returns the generation that is in force at a czxid in the random histories: a token
// with any other has lost its generation on its way.
func GenerationAt(czxid int64) uint64 { return uint64(czxid / 4) }

// Main runs the tests of a package, whose machines check their invariants after each event. A random test of it makes 500
// histories in an exhaustive run and 100 in others, unless the command line has another -rapid.checks.
func Main(m *testing.M) {
	sample.Histories(100, 500)
	invariants.Violated = func(err error) { panic(err) }
	goleak.VerifyTestMain(m)
}
