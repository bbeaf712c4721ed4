//go:build unix

package main

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A certificate for ZooKeeper that is renewed on the disk counts for the next connection: a command keeps its
// lock over a restart of the server behind the end of the former certificate, which a server refuses.
func TestRenewedTowardsZooKeeper(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	a := zktest.NewAuthority(t)
	secure, settings := a.SecureSettings()
	// A session that outlives the restart of the server on a slow machine.
	s := zktest.Own(t, append(settings, zktest.Setting("maxSessionTimeout", "180000"))...)
	ends := time.Now().Add(25 * time.Second) // the command runs before
	ending := func(c *x509.Certificate) { c.NotAfter = ends }
	keys, trust := a.Files(a.IssueChanged("client", ending))
	former, _ := a.Files(a.IssueChanged("client", ending))
	flags := func(keys string) []string {
		return []string{"-zk", secure, "-session", "180s", "-tls-ca", trust, "-tls-cert", keys, "-tls-key", keys}
	}
	path := s.Path(t)
	end := filepath.Join(t.TempDir(), "end")
	p := launch(t, "", append(flags(keys), "-lock", path, "--", "sh", "-c", `echo up; while [ ! -e "$0" ]; do sleep 0.1; done`, end)...)
	if line := p.line(t); line != "up" {
		t.Fatalf("%q; %s", line, &p.stderr)
	}
	node := s.Nodes(t, path)
	renewed, _ := a.Files(a.Issue("client"))
	if err := os.Rename(renewed, keys); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(ends) + time.Second) // the end of a certificate is a time
	s.Stop(t)
	s.Start(t)
	if late := launch(t, "", append(flags(former), "-lock", path+"-late", "-wait", "8s", "--", "true")...); late.code(t) != exitUnavailable {
		t.Errorf("a certificate that has ended is accepted: %s", &late.stderr)
	}
	if next := launch(t, "", append(flags(keys), "-lock", path+"-next", "-wait", "1m", "--", "true")...); next.code(t) != 0 {
		t.Errorf("the renewed certificate is not accepted: %s", &next.stderr)
	}
	if now := s.Nodes(t, path); len(now) != 1 || now[0] != node[0] {
		t.Errorf("%q, then %q", node, now)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 || !strings.Contains(p.stderr.String(), "connection to ZooKeeper is back") {
		t.Errorf("the command has ended with %d; %s", code, &p.stderr)
	}
}
