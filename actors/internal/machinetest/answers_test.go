package machinetest

import "testing"

func TestScriptsAnswerOpenEffects(t *testing.T) {
	for _, c := range []struct {
		effect, event string
		good          bool
	}{
		{"create serial=1 prefix=me1# list-after", "created serial=1 node=me1#0 children=me1#0", true},
		{"create serial=1 prefix=me1# list-after", "created serial=1 node=me1#0", false},
		{"create serial=1 prefix=me1# list-after", "created serial=1 node=me1#0 directory=0", true},
		{"create serial=1 prefix=me1#", "created serial=1 node=me1#0 children=me1#0", false},
		{"create serial=1 prefix=me1#", "created serial=1 node=me1#0 children=me1#0 found", true},
		{"create serial=1 prefix=me1#", "created serial=2 node=me2#0", false},
		{"create serial=1 prefix=me1#", "created serial=2 node=me2#0 unasked", true},
		{"create serial=1 prefix=me1#", "listed serial=1", false},
		{"list serial=3", "listed serial=3 czxids=1", false},
		{"list serial=3 czxids", "listed serial=3 czxids=1", true},
		{"grant id=1 node=me1#0", "release id=1", true},
		{"list serial=3", "listed", false},
	} {
		o := openEffects{}
		o.add(parse(t, c.effect))
		if err := o.check(parse(t, c.event)); (err == nil) != c.good {
			t.Errorf("%q after %q: %v", c.event, c.effect, err)
		}
	}
}
