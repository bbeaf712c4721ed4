package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The measurement begins when every client has had a turn, after any number of turns of the others.
func TestSettle(t *testing.T) {
	ready, err := load{path: "/x", clients: 2, locks: 2}.prepare(t.Context(), unevenDriver{})
	if err != nil {
		t.Fatal(err)
	}
	defer ready.free()
	begun := now()
	if _, err := ready.run(begun, begun+int64(time.Millisecond), true); err != nil {
		t.Fatal(err)
	}
	if after := time.Duration(ready.window.from.Load() - begun); after < lateness {
		t.Errorf("it began after %v, and the last client after %v", after, lateness)
	}
}

// lateness is the wait for the second lock.
const lateness = 30 * time.Millisecond

// unevenDriver grants the first lock at once each time, and the second one late.
type unevenDriver struct{}

func (unevenDriver) close() {}

func (unevenDriver) lock(_ context.Context, a access) (locker, error) {
	return unevenLock{strings.HasSuffix(a.path, "/1")}, nil
}

type unevenLock struct{ second bool }

func (l unevenLock) acquire(context.Context) error {
	if l.second {
		<-time.After(lateness)
	}
	return nil
}

func (unevenLock) release(context.Context) error { return nil }
