//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/actorlock/actorlock/examples/internal/servetest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// clients lists the clients of all lock servers that answer, and names those that do not.
func TestClients(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	addr, _ := servetest.Start(t, zk, 0, nil)
	holder := launch(t, "", "-server", addr, "-insecure", "-lock", zk.Path(t), "--", "sh", "-c", "echo up; sleep 1000")
	holder.line(t)
	all := objects(t, output(t, 0, "clients", "-server", addr, "-insecure", "-json"))
	if len(all) != 2 || all[0]["held"] != 1.0 || all[0]["waiting"] != 0.0 || all[0]["connected"] != true || all[0]["server"] != addr ||
		!strings.HasPrefix(all[0]["address"].(string), "127.0.0.1:") || all[0]["lease_left_seconds"].(float64) <= 0 || all[1]["held"] != 0.0 {
		t.Errorf("%v", all)
	}
	p := launch(t, "", "clients", "-server", addr+",127.0.0.1:1", "-insecure")
	if head := p.line(t); !strings.HasPrefix(head, "SERVER") {
		t.Errorf("%q", head)
	}
	if row := p.line(t); !strings.HasPrefix(row, addr+"  ") || !strings.Contains(row, "  1     0 ") {
		t.Errorf("%q", row)
	}
	if code := p.code(t); code != exitUnavailable || !strings.Contains(p.stderr.String(), "127.0.0.1:1: ") {
		t.Errorf("code %d, %s", code, &p.stderr)
	}
	for text, args := range map[string][]string{"-server is missing": {"-zk", zk.Addr()}, "no arguments": {"-server", addr, "-insecure", "/a"}} {
		if p := launch(t, "", append([]string{"clients"}, args...)...); p.code(t) != exitUsage || !strings.Contains(p.stderr.String(), text) {
			t.Errorf("%q: %s", args, &p.stderr)
		}
	}
}
