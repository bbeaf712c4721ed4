package lease

import (
	"testing"
	"time"
)

// TestWeakenedRules checks that the histories find each way to weaken the rule in what surrounds
// the machines. The ways to weaken the machines themselves are planted faults of the simulation.
func TestWeakenedRules(t *testing.T) {
	for _, c := range []struct {
		weak weakness
		seed uint64 // finds it
		how  string
	}{
		{weakness{promiseByNewest: true}, 870, "the newest answer is taken for one that the leader has heard of"},
		{weakness{oldClock: true}, 6, "the server has read its clock before the renewal arrives"},
		{weakness{clockStops: true}, 7, "the clock of the client stands still in a suspend"},
		{weakness{drainsAtOnce: true}, 4, "a server that drains closes its session at once"},
		{weakness{closedIsRelease: true}, 9, "a closed connection is a release"},
		{weakness{closesLostAfterMargin: true}, 207, "a failed bridge closes its session when the margin ends"},
		{weakness{grantExtends: true}, 39, "a grant extends the belief"},
		{weakness{resumesLapsed: true}, 103, "the client resumes a lease that has lapsed"},
		{weakness{deletesOldNodes: true}, 16373, "a server deletes nodes of its earlier sessions"},
	} {
		t.Run(c.how, func(t *testing.T) {
			if runHistory(c.seed, c.weak, false).violated != "" {
				return
			}
			const most = 20_000
			for seed := uint64(1); seed <= most; seed++ {
				if w := runHistory(seed, c.weak, false); w.violated != "" {
					t.Logf("seed %d finds it, and %d no longer: %s", seed, c.seed, w.violated)
					return
				}
			}
			t.Errorf("no violation in %d histories", most)
		})
	}
}

// TestHealthyClientNeverLapses breaks streams and crashes followers for a moment, now and then.
// Several answers in a row are lost with their streams.
func TestHealthyClientNeverLapses(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		w := newWorld(seed, weakness{}, false)
		const length = 300 * time.Second
		for at := 10 * time.Second; at < length-30*time.Second; at += 20 * time.Second {
			w.at(at+w.seconds(0, 9), func() {
				if d := w.client.stream; d != nil {
					w.loseAnswers = w.random.IntN(maxUnconfirmed + 1)
					d.breakUp("now and then")
				}
			})
			w.at(at+w.seconds(0, 9), func() { w.leader.followers[w.random.IntN(2)].crash(time.Second) })
		}
		w.run(length)
		if w.lapses > 0 || w.violated != "" {
			t.Fatalf("seed %d: %d lapses %s", seed, w.lapses, w.violated)
		}
	}
}
