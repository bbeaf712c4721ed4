//go:build unix

package main

import (
	"bufio"
	"crypto/x509"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	holder.signal(t, syscall.SIGTERM) // the lock server would wait for the lease of one that is killed
	holder.code(t)
}

// A real lockd with certificates and rules lists its clients by the identities in their certificates, to whom
// the rules allow to inspect all.
func TestClientsByCertificate(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zk := zktest.Embedded(t)
	path := zk.Path(t)
	bin := filepath.Join(t.TempDir(), "lockd")
	if text, err := exec.Command("go", "build", "-o", bin, "../lockd").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	a := zktest.NewAuthority(t)
	issue := func(identity string) string {
		keys, _ := a.Files(a.IssueChanged(identity, func(c *x509.Certificate) {
			c.DNSNames, c.URIs, c.NotAfter = nil, []*url.URL{{Scheme: "spiffe", Host: "prod", Path: identity}}, time.Now().AddDate(0, 1, 0)
		}))
		return keys
	}
	serverKeys, trust := a.Files(a.Issue("lockd"))
	rules := writeFile(t, "allow spiffe://prod/holder "+path+" acquire\nallow spiffe://prod/operator / inspect\n", 0o600)
	server := exec.Command(bin, "-zk", zk.Addr(), "-listen", "127.0.0.1:0", "-tls-cert", serverKeys, "-tls-key", serverKeys, "-tls-client-ca", trust, "-allow", rules)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	zktest.Spawn(t, server)
	line, err := bufio.NewReader(out).ReadString('\n')
	_, port, is := strings.Cut(strings.TrimSpace(line), "serving on 127.0.0.1:")
	if err != nil || !is {
		t.Fatalf("%q, %v", line, err)
	}
	addr := "localhost:" + port
	holderKeys, operatorKeys := issue("/holder"), issue("/operator")
	flags := func(keys string) []string {
		return []string{"-server", addr, "-tls-ca", trust, "-tls-cert", keys, "-tls-key", keys}
	}
	holder := launch(t, "", append(flags(holderKeys), "-lock", path, "--", "sh", "-c", "echo up; sleep 1000")...)
	holder.line(t)
	all := objects(t, output(t, 0, append([]string{"clients", "-json"}, flags(operatorKeys)...)...))
	if len(all) != 2 || all[0]["identity"] != "spiffe://prod/holder" || all[0]["held"] != 1.0 || all[1]["identity"] != "spiffe://prod/operator" || all[1]["held"] != 0.0 {
		t.Errorf("%v", all)
	}
	const want = `"spiffe://prod/holder" may not inspect /: no rule of the lock server allows it`
	if p := launch(t, "", append([]string{"clients"}, flags(holderKeys)...)...); p.code(t) != exitUnavailable || !strings.Contains(p.stderr.String(), want) {
		t.Errorf("a client that may not got code %d, %s", p.cmd.ProcessState.ExitCode(), &p.stderr)
	}
}
