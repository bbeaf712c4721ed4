package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The measurement begins when every client has had a turn, after any number of turns of the others.
func TestAwaitTurns(t *testing.T) {
	ready, err := load{path: "/x", clients: 2, locks: 2}.prepare(t.Context(), unevenDriver{})
	if err != nil {
		t.Fatal(err)
	}
	defer ready.free()
	begun := now()
	if _, err := ready.run(begun, begun+int64(time.Millisecond), true); err != nil {
		t.Fatal(err)
	}
	if after := time.Duration(ready.window.from.Load() - begun); after < secondDelay {
		t.Errorf("the measurement began after %v, and the last client after %v", after, secondDelay)
	}
}

// secondDelay is how long the second lock takes to acquire.
const secondDelay = 30 * time.Millisecond

// unevenDriver grants the first lock at once each time, and the second one after secondDelay.
type unevenDriver struct{}

func (unevenDriver) close() {}

func (unevenDriver) lock(_ context.Context, a access) (locker, error) {
	return unevenLock{strings.HasSuffix(a.path, "/1")}, nil
}

type unevenLock struct{ second bool }

func (l unevenLock) acquire(context.Context) error {
	if l.second {
		<-time.After(secondDelay)
	}
	return nil
}

func (unevenLock) release(context.Context) error { return nil }
