package zkconn

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// A request fails at the eighth hang-up, with pauses before, and names the setting. The end of a
// connection that is no hang-up on the request does not count.
func TestHangUps(t *testing.T) {
	var h HangUps
	pauses := []time.Duration{0, time.Second / 4, time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	for i, pause := range pauses {
		if err := h.Note(zk.ErrConnectionClosed); err != nil || int(h) != i {
			t.Errorf("a lost connection counts: %v, %d", err, h)
		}
		if err := h.Note(errHungUp); err != nil || h.Pause() != pause {
			t.Errorf("hang-up %d: %v, pause %v, not %v", i+1, err, h.Pause(), pause)
		}
	}
	for range 2 {
		err := h.Note(errHungUp)
		if err == nil || !strings.Contains(err.Error(), "jute.maxbuffer") {
			t.Errorf("hang-up %d: %v", h, err)
		}
	}
	if ReasonFor(h.Final()) != messages.Reason_UNAVAILABLE || IsTransient(h.Final()) {
		t.Error("the failure is not final")
	}
}
