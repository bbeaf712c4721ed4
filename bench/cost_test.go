package main

import (
	"testing"
	"time"
)

// The cores of a cost are those of its time by the clock, and the busiest thread is the one that used most in that time.
func TestCores(t *testing.T) {
	before := cost{client: time.Second, server: time.Minute, idle: time.Hour, took: time.Hour, threads: map[string]time.Duration{"a": time.Minute, "b": time.Second}}
	after := cost{client: 2 * time.Second, server: time.Minute + 3*time.Second, idle: time.Hour + 500*time.Millisecond, took: time.Hour + 2*time.Second,
		threads: map[string]time.Duration{"a": time.Minute + 100*time.Millisecond, "b": 2 * time.Second, "c": 800 * time.Millisecond}}
	got := after.since(before).per(1_000_000)
	for key, want := range map[string]float64{clientTimeKey: 1, serverTimeKey: 3, clientCoresKey: 0.5, serverCoresKey: 1.5, busiestKey: 0.5, idleCoresKey: 0.25} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if got := (cost{took: time.Second, idle: time.Second}).per(1); len(got) != 0 {
		t.Errorf("without the server's time: %v", got)
	}
}

func TestIdleTime(t *testing.T) {
	if idleTime() <= 0 {
		t.Error("the system does not tell for how long its cores were idle")
	}
}
