package zkbridge

import (
	"context"
	"errors"
	"testing"

	"github.com/actorlock/actorlock/messages"
)

// Reads of directories wait while as many are under way as may be, and end with their context; those
// without a limit never wait.
func TestReadLimit(t *testing.T) {
	limit := NewReadLimit(2, 1000, nil)
	var ends []func()
	for range 2 {
		end, err := limit.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // begin would take a free place one time in two, as the context has ended, too
		if _, err := limit.begin(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("a third directory: %v", err)
		}
	}
	ends[0]()
	if _, err := limit.begin(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := readLimitOf(t.Context()).begin(ended); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	count, other := limit.count("/a"), limit.count("/b")
	for _, err := range []error{count(2, 100), count(0, 600), other(0, 900)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := count(0, 100); !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
		t.Errorf("1,056 bytes of 1,000: %v", err)
	}
	if err := readLimitOf(t.Context()).count("/a")(1<<30, 1<<30); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
