package queue_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
)

func TestDowngrades(t *testing.T) {
	for name, c := range map[string]struct {
		rule       queue.Rule
		downgrades bool
	}{
		"mutex":      {queue.Mutex(), false},
		"read-write": {queue.ReadWrite(), true},
	} {
		if got := c.rule.Downgrades(); got != c.downgrades {
			t.Errorf("%s: Downgrades() = %v", name, got)
		}
	}
}
