package main

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestFirstUse(t *testing.T) {
	p, _ := findPeer("actorlock")
	got, err := measureFirstUse(&worker{peer: p, addr: zktest.Embedded(t).Addr()}, message{args: map[string]string{"path": "/new", "locks": "300"}})
	if err != nil || got["ops_per_sec"] <= 0 || got["bytes_per_lock"] <= 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
