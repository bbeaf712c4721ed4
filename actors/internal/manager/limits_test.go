package manager

import (
	"context"
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/messages"
)

// TestLastReleaseBesideANewRequest: the last holder has released while a new request was counted,
// before that is refused. Then only the refusal can notice that no request is open.
func TestLastReleaseBesideANewRequest(t *testing.T) {
	m := &Manager{}
	m.draining, m.beginDrain = context.WithCancel(t.Context())
	m.quiet, m.becomeQuiet = context.WithCancel(t.Context())
	m.openRequests.Store(1)
	quiet := m.RefuseNew()
	m.openRequests.Store(0)
	if reason, _ := m.Admit(&messages.Acquire{}, 0, func(string) bool { return false }); reason != messages.Reason_DRAINING {
		t.Fatalf("the request is refused with %v", reason)
	}
	if quiet.Err() == nil {
		t.Fatal("no request is open, and a Drain goes on")
	}
}

// A program that misuses many paths fills neither the log nor the memory.
func TestMisusesAreBounded(t *testing.T) {
	m := &Manager{misused: map[string]map[string]bool{}}
	for _, way := range []string{"one", "another"} {
		reported := 0
		for i := range 2000 {
			if m.FirstMisuse(fmt.Sprint("/", i%1000), way) {
				reported++
			}
		}
		if reported != mostMisused {
			t.Errorf("%s: %d of 1000 paths are reported, want %d", way, reported, mostMisused)
		}
	}
}
