package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// bubble runs f in virtual time on an embedded server without a network.
func bubble(t *testing.T, f func(v *virtual)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T) {
		s, err := embedded.Start(embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		must(t, err)
		v := &virtual{T: t, Server: s}
		defer func() { // a bubble must not be left with goroutines in it, even by a failing test
			for _, locks := range v.opened {
				locks.Close()
			}
			s.Close()
		}()
		f(v)
	})
}

// virtual is a testLock in a bubble: its lock is at /lock.
type virtual struct {
	*testing.T
	*embedded.Server
	opened []*actors.Locks
}

func (v *virtual) mutex(configure ...func(*actors.Config)) (*actors.Locks, *actors.Mutex) {
	v.Helper()
	configure = append([]func(*actors.Config){func(cfg *actors.Config) { cfg.Dial = v.Dial }}, configure...)
	cfg := actors.Config{SessionTimeout: session}
	for _, f := range configure {
		f(&cfg)
	}
	locks, err := actors.Connect(within(v.T), "embedded:1", cfg)
	must(v, err)
	v.opened = append(v.opened, locks)
	return locks, locks.Mutex("/lock")
}

// nodes are those of the lock.
func (v *virtual) nodes() (nodes []string) {
	for line := range strings.Lines(v.Dump()) {
		if name, ok := strings.CutPrefix(line, "/lock/"); ok {
			nodes = append(nodes, strings.TrimSpace(name))
		}
	}
	return nodes
}

// expectClean waits, an hour at most, until nothing is left of the lock.
func (v *virtual) expectClean() {
	v.Helper()
	zktest.Eventually(v, time.Hour, func() bool { return len(v.nodes()) == 0 }, "no node is left\n%s", dump{v})
	zktest.Eventually(v, time.Hour, func() bool { return zktest.WatchesOf(v.Server) == 0 }, "no watch is left")
}

type dump struct{ v *virtual }

func (d dump) String() string { return fmt.Sprint(d.v.nodes()) }
