//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ls shows the locks beside a directory that is too large to be listed, and never an empty list as
// if there were none. The flag that the message names helps.
func TestListBesideTooLargeDirectory(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t)
		conn, large := s.Client(t), root+"/large"
		for _, path := range []string{root, large} {
			if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		const nodes, batch = 700, 100 // of more than 1 MiB as a list
		name := strings.Repeat("x", 2000)
		for i := 0; i < nodes; i += batch {
			var ops []any
			for j := range batch {
				ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s%d", large, name, i+j), Acl: zk.WorldACL(zk.PermAll)})
			}
			if _, err := conn.Multi(ops...); err != nil {
				t.Fatal(err)
			}
		}
		held := root + "/held"
		holder(t, s, held)
		for _, c := range []struct {
			args string
			code int
			text string // in standard output
		}{
			{"-max-reply 1MiB " + root, exitUnavailable, held + " "},
			{"-max-reply 1MiB -json " + root, exitUnavailable, `"path":"` + held + `"`},
			{"-max-reply 1MiB " + large, exitUnavailable, ""},
			{"-max-reply 1MiB -json " + large, exitUnavailable, ""},
			{root, 0, held + " "},
			{large, 0, "no lock at or below this path"},
		} {
			p := launch(t, "", append([]string{"ls", "-zk", s.Addr()}, strings.Fields(c.args)...)...)
			text := ""
			for line := range p.lines {
				text += line + "\n"
			}
			if code := p.code(t); code != c.code || !strings.Contains(text, c.text) || c.text == "" && text != "" {
				t.Errorf("ls %s: code %d, want %d; %.1000s; %.1000s", c.args, code, c.code, text, &p.stderr)
			}
			if c.code != 0 {
				for _, part := range []string{large, "not complete", "-max-reply"} {
					if !strings.Contains(p.stderr.String(), part) {
						t.Errorf("ls %s: %q is not in %s", c.args, part, &p.stderr)
					}
				}
			}
		}
	})
}
