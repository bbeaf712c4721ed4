package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The limit creates as many nodes as it counts acquires, and deletes them when it makes the next.
func TestLimit(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		for name, l := range map[string]load{"one directory": {path: "/one", locks: 1}, "many": {path: "/many", locks: 256}} {
			d, err := limit.open(t.Context(), s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			ready, err := d.(bulkDriver).prepare(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			from := now()
			got, err := ready.run(from, from+int64(50*time.Millisecond), false)
			if err != nil || got.total < limitBatch || got.ops > got.total || got.ops != got.latencies.total() {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			nodes := 0
			for i := range l.locks {
				children, _, err := s.Client(t).Children(fmt.Sprint(l.path, "/", i))
				if err != nil {
					t.Fatal(err)
				}
				nodes += len(children)
			}
			if want := limitBatch * max(limitInFlight, l.locks/limitBatch); nodes != want {
				t.Errorf("%s: %d nodes are left, want %d", name, nodes, want)
			}
			ready.free()
		}
	})
}
