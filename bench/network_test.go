package main

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Each message arrives after the delay, also if another was sent shortly before. The end of a connection is passed on.
func TestPassOn(t *testing.T) {
	const delay = 5 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		client, near := net.Pipe()
		far, server := net.Pipe()
		go passOn(near, far, delay, time.Sleep)
		begun := time.Now()
		go func() {
			io.WriteString(client, "one")
			time.Sleep(2 * time.Millisecond)
			io.WriteString(client, "two")
			time.Sleep(10 * time.Millisecond)
			client.Close()
		}()
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{"one", delay}, {"two", delay + 2*time.Millisecond}} {
			text := make([]byte, 3)
			if _, err := io.ReadFull(server, text); err != nil || string(text) != want.text || time.Since(begun) != want.at {
				t.Errorf("%q after %v, %v; want %q after %v", text, time.Since(begun), err, want.text, want.at)
			}
		}
		if n, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%d bytes, %v after the end", n, err)
		}
	})
}

// A sleep takes as long as it is asked to, each time anew, and none for a time that has passed.
func TestSleep(t *testing.T) {
	sleep := newSleep()
	for _, d := range []time.Duration{3 * time.Millisecond, 0, -time.Hour, 100 * time.Microsecond, 2 * time.Millisecond} {
		begun := time.Now()
		if sleep(d); time.Since(begun) < d {
			t.Errorf("slept for %v in place of %v", time.Since(begun), d)
		}
	}
}
