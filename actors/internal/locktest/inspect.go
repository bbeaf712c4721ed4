package locktest

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Outline returns a queue as a short text: "mutex: exclusive! exclusive" for a holder and a waiter.
func Outline(q actors.Queue) string {
	text := q.Recipe + ":"
	for i, p := range q.Participants {
		text += " " + p.Kind
		if p.Holds {
			text += "!"
		}
		if p.Ahead > i {
			text += fmt.Sprintf(" (%d ahead of place %d)", p.Ahead, i)
		}
	}
	return text
}

// Inspect returns the queue of the lock at a path.
func Inspect(t testing.TB, locks *actors.Locks, path string) actors.Queue {
	t.Helper()
	q, err := locks.Inspect(Within(t), path)
	Must(t, err)
	if q.Path != path {
		t.Errorf("path %q, want %q", q.Path, path)
	}
	return q
}

// WaitQueue waits until the outline of the queue is the wanted one.
func WaitQueue(t testing.TB, locks *actors.Locks, path, want string) actors.Queue {
	t.Helper()
	var q actors.Queue
	got := []string{""} // whose element Eventually prints
	zktest.Eventually(t, zktest.TimeLimit, func() bool {
		q = Inspect(t, locks, path)
		got[0] = Outline(q)
		return got[0] == want
	}, "the queue is %v, want %s", &got, want)
	return q
}
