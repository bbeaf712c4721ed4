package machinetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/sample"
)

// Repeat runs random actions as rapid's Repeat does, but draws another action for one that skips.
// Rapid's Repeat ends a history when two of three actions have skipped, which is mostly after the
// first steps. As with rapid, the action "" runs after each other one.
//
// Rapid draws actions more often the earlier they are in the order of their names. A change of
// names may thus weaken a test.
func Repeat(t *rapid.T, actions map[string]func(*rapid.T)) {
	check := actions[""]
	if check == nil {
		check = func(*rapid.T) {}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(actions)), func(name string) bool { return name == "" })
	t.Repeat(map[string]func(*rapid.T){
		"": check,
		"step": func(t *rapid.T) {
			for range 10 {
				if act(t, actions[rapid.SampledFrom(names).Draw(t, "action")]) {
					return
				}
			}
		},
	})
}

// act runs an action and reports whether it did not skip.
func act(t *rapid.T, action func(*rapid.T)) (done bool) {
	defer func() {
		if r := recover(); r != nil && fmt.Sprintf("%T", r) != "rapid.invalidData" {
			panic(r)
		}
	}()
	action(t)
	return true
}

// Several returns an action that runs one to most of the actions of these names, the first ones
// more often. An action that skips is left out.
func Several(most int, actions map[string]func(*rapid.T), names ...string) func(*rapid.T) {
	return func(t *rapid.T) {
		for range rapid.IntRange(1, most).Draw(t, "actions") {
			act(t, actions[rapid.SampledFrom(names).Draw(t, "action")])
		}
	}
}

// Draw draws one of the values. It skips the action if there are none.
func Draw[E any](t *rapid.T, values []E, label string) E {
	if len(values) == 0 {
		t.Skip("no " + label)
	}
	return rapid.SampledFrom(values).Draw(t, label)
}

// Open holds the open requests of one process, each with its state: waiting, held or released.
type Open map[requests.ID]string

// In returns the requests in a state, in order.
func (o Open) In(state string) []requests.ID {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o)), func(id requests.ID) bool { return o[id] != state })
}

// Answer applies an effect that answers a request. It returns an error if the request is not in the
// state of which the effect is an end.
func (o Open) Answer(kind requests.EffectKind, id requests.ID) error {
	was := o[id]
	switch {
	case kind == requests.Grant && was == "waiting":
		o[id] = "held"
		return nil
	case kind == requests.Refuse && was != "", kind == requests.Lose && was == "held", kind == requests.ConfirmRelease && was == "released":
		delete(o, id)
		return nil
	}
	return fmt.Errorf("%v of request %d, which was %q", kind, id, was)
}

// TokenAt returns the token of a czxid and a step in the random histories, with the generation in
// force at the czxid. A token with any other generation is wrong.
func TokenAt(czxid int64, step uint32) requests.Token {
	return requests.Token{Generation: uint64(czxid / 4), Czxid: czxid, Step: step}
}

// Main runs the tests of a package, whose machines check their invariants after each event. A
// random test of it makes so many histories, all of them in an exhaustive run and few in others,
// unless the command line has another -rapid.checks.
func Main(m *testing.M, few, all int) {
	sample.Histories(few, all)
	invariants.Violated = func(err error) { panic(err) }
	goleak.VerifyTestMain(m)
}
