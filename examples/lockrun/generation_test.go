//go:build unix

package main

import (
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestGeneration(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t)
		if _, err := s.Client(t).Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		generation := func(flags ...string) uint64 {
			t.Helper()
			p := launch(t, "", append([]string{"generation", "-zk", s.Addr() + root}, flags...)...)
			g, err := strconv.ParseUint(p.line(t), 10, 64)
			if code := p.code(t); code != 0 || err != nil {
				t.Fatalf("code %d, %v; %s", code, err, &p.stderr)
			}
			return g
		}
		if g := generation(); g != 0 {
			t.Errorf("generation %d before the first raise", g)
		}
		first := generation("-raise")
		if g := generation(); first == 0 || g != first {
			t.Errorf("generation %d, raised to %d", g, first)
		}
		if g := generation("-raise"); g <= first {
			t.Errorf("generation %d after %d", g, first)
		}
		if _, err := s.Client(t).Set(root+zkbridge.GenerationPath, []byte("seven"), -1); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{nil, {"-raise"}} {
			p := launch(t, "", append([]string{"generation", "-zk", s.Addr() + root}, flags...)...)
			if code := p.code(t); code != exitUnavailable {
				t.Errorf("%q of unusable data: code %d; %s", flags, code, &p.stderr)
			}
		}
	})
}
