package campaign

import (
	"context"
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/messages"
)

func TestPauseGrows(t *testing.T) {
	for failed, longest := range map[int]int{0: 100, 1: 200, 5: 3200, 6: 6400, 7: 10_000, 1_000_000: 10_000} {
		for range 100 {
			if p := Pause(failed).Milliseconds(); p < int64(longest/2) || p >= int64(longest) {
				t.Errorf("pause of %d ms after %d failures, want up to %d", p, failed, longest)
			}
		}
	}
}

func TestIsTemporary(t *testing.T) {
	for err, want := range map[error]bool{
		&messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED}:                true,
		&messages.Lost{Reason: messages.Reason_SESSION_LOST}:                     true,
		fmt.Errorf("wrapped: %w", messages.Reason_INTERNAL):                      true,
		&messages.Refused{Reason: messages.Reason_NO_AUTH}:                       false,
		&messages.Refused{Reason: messages.Reason_TIMED_OUT, Disconnected: true}: false,
		context.Canceled: false,
		nil:              false,
	} {
		if IsTemporary(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
