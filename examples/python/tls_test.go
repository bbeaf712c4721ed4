//go:build linux

package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The client has TLS with a real lockd: its lease outlives cut streams, also when its own certificate has ended
// and is renewed on the disk, and is over when the server is killed. Each side refuses another authority.
func TestClientOverTLS(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zk := zktest.Embedded(t)
	path, interpreter := zk.Path(t), python(t)
	a, other := zktest.NewAuthority(t), zktest.NewAuthority(t)
	keys, trust := a.Files(a.Issue("lockd"))
	server, addr := startLockd(t, zk, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust)
	proxy := zktest.Proxy(t, addr)
	client := func(trust, keys string) *program {
		return start(t, interpreter, "client.py", strings.Replace(proxy.Addr(), "127.0.0.1", "localhost", 1), path, trust, keys, keys)
	}
	otherKeys, otherTrust := other.Files(other.Issue("client"))
	strange, trusting := client(trust, otherKeys), client(otherTrust, keys)

	ends := time.Now().Add(20 * time.Second) // the client is connected before
	mine, _ := a.Files(a.IssueChanged("client", func(c *x509.Certificate) { c.NotAfter = ends }))
	holds := client(trust, mine)
	holds.wantLine(t, "holds ")
	renewed, _ := a.Files(a.Issue("client"))
	if err := os.Rename(renewed, mine); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(ends) + time.Second) // the end of a certificate is a time
	proxy.Cut()
	waits := client(trust, mine)
	zktest.Eventually(t, timeLimit, func() bool { return len(zk.Nodes(t, path)) == 2 }, "another client waits")
	time.Sleep(6 * time.Second) // longer than the lease that was before the cut
	if nodes := zk.Nodes(t, path); len(nodes) != 2 {
		t.Errorf("the lease is not resumed: %q", nodes)
	}
	holds.in.Close()
	holds.wantLine(t, "released")
	holds.wantCode(t, 0)
	waits.wantLine(t, "holds ")
	if err := server.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waits.wantLine(t, "lost: the lease is over")
	waits.wantCode(t, 70)
	for _, p := range []*program{strange, trusting} {
		p.wantLine(t, "lost: no lock server grants a lease")
		p.wantCode(t, 70)
	}
}

// The folder can be installed, without a network, and the module then be imported from elsewhere.
func TestInstall(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	interpreter := python(t)
	if text, err := exec.Command(interpreter, "-c", "import setuptools, pip").CombinedOutput(); err != nil {
		t.Skipf("no pip on this machine (install Debian's packages python3-pip and python3-setuptools): %s", text)
	}
	folder, target := t.TempDir(), t.TempDir()
	for _, name := range []string{"actorlock.py", "pyproject.toml"} { // a build leaves files in its folder
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command(interpreter, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", target, folder)
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	use := exec.Command(interpreter, "-B", "-c", "import actorlock, importlib.metadata; print(actorlock.__file__, importlib.metadata.version('actorlock'), actorlock.Client.__name__)")
	use.Dir, use.Env = target, append(os.Environ(), "PYTHONPATH="+target)
	text, err := use.CombinedOutput()
	if want := filepath.Join(target, "actorlock.py") + " 0.1.0 Client\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
}
