package lockqueue

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
)

// run makes many requests, delivers many messages, and sometimes makes trouble.
func (w *world) run() {
	actions := w.actions()
	do := func(names []string, most int) func(*rapid.T) {
		return func(t *rapid.T) {
			for range rapid.IntRange(1, most).Draw(t, "actions") {
				machinetest.Act(t, actions[rapid.SampledFrom(names).Draw(t, "action")])
			}
		}
	}
	w.t.Repeat(map[string]func(*rapid.T){
		"owners":  do([]string{"acquire", "acquire", "acquire", "release", "release", "cancel"}, 4),
		"traffic": do([]string{"serve", "serve", "answer", "answer", "read behind", "read behind", "event", "search", "follower"}, 20),
		"trouble": do(slices.Sorted(maps.Keys(actions)), 3),
	})
}

// rest lets all processes notice which nodes were deleted. Afterwards no contender that could hold may
// wait.
func (w *world) rest() {
	w.actions()["expire"](w.t)
	for range 6 {
		w.drain()
		for _, p := range w.procs {
			p.ticks++
			w.step(p, Tick{})
		}
	}
	w.quiet = true
	w.drain()
	w.quiet = false
}
