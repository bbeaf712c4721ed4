//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// secureServers runs a test with the addresses of both servers' ports for TLS, where clients need a
// certificate of the authority, and with the files of a client that has one.
func secureServers(t *testing.T, f func(t *testing.T, a *zktest.Authority, addr, keys, trust string)) {
	t.Run("embedded", func(t *testing.T) {
		a := zktest.NewAuthority(t)
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Issue("server")},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		embedded.Run(t, embedded.ServerConfig{Listener: l, MaxSessionTimeout: time.Minute})
		keys, trust := a.Files(a.Issue("client"))
		f(t, a, strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1), keys, trust)
	})
	t.Run("zookeeper", func(t *testing.T) {
		a := zktest.NewAuthority(t)
		addr, settings := a.SecureSettings()
		zktest.Own(t, settings...)
		keys, trust := a.Files(a.Issue("client"))
		f(t, a, addr, keys, trust)
	})
}

// writeFile writes a new file, and returns its path.
func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

// Flags or the environment configure the connection to a secured ensemble. A client with other
// credentials may neither acquire nor read the lock.
func TestSecuredEnsemble(t *testing.T) {
	secureServers(t, func(t *testing.T, a *zktest.Authority, addr, keys, trust string) {
		const path = "/secured/lock"
		tlsFlags := []string{"-tls-ca", trust, "-tls-cert", keys, "-tls-key", keys}
		auth := writeFile(t, "# of the tests\n\ndigest:backup:pass:word\r\n", 0o600)
		flags := append([]string{"-zk", addr, "-auth-file", auth, "-acl", "creator"}, tlsFlags...)
		p := launch(t, "", append(flags, "-lock", path, "--", "sh", "-c", "echo up; sleep 1000")...)
		if got := p.line(t); got != "up" {
			t.Fatal(got)
		}
		t.Run("environment", func(t *testing.T) {
			for name, value := range map[string]string{"ZK": addr, "TLS_CA": trust, "TLS_CERT": keys, "TLS_KEY": keys,
				"TLS_SERVER_NAME": "localhost", "AUTH": "digest:backup:pass:word", "ACL": "creator", "SESSION": "15s"} {
				t.Setenv("ACTORLOCK_"+name, value)
			}
			var all []contender
			who := launch(t, "", "who", path, "-json")
			if err := json.Unmarshal([]byte(who.line(t)), &all); err != nil || len(all) != 1 || !all[0].Holds || all[0].Owner != "sh" {
				t.Errorf("%v: %+v", err, all)
			}
			if code := who.code(t); code != 0 {
				t.Errorf("code %d; %s", code, &who.stderr)
			}
		})
		otherKeys, _ := a.Files(a.Issue("other"))
		wrong := writeFile(t, "digest:backup:other", 0o600)
		other := []string{"-zk", addr, "-auth-file", wrong, "-tls-ca", trust, "-tls-cert", otherKeys, "-tls-key", otherKeys}
		for _, args := range [][]string{
			append([]string{"who", path}, other...),
			append(other, "-lock", path, "--", "true"),
		} {
			p := launch(t, "", args...)
			code, text := p.code(t), p.stderr.String()
			if code != exitUnavailable || !strings.Contains(text, "is not granted on "+path) || !strings.Contains(text, "-auth-file") ||
				strings.Contains(text, "backup:other") {
				t.Errorf("%q: code %d; %s", args, code, text)
			}
		}
	})
}

// textServer runs a server that sends text to each client and closes the connection. It returns the
// server's address.
func textServer(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 10_000))
			conn.Write([]byte(text))
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// Each mistake leads to one line that names what to change.
func TestFailureLines(t *testing.T) {
	t.Parallel()
	a, other := zktest.NewAuthority(t), zktest.NewAuthority(t)
	secure, settings := a.SecureSettings()
	s := zktest.Own(t, settings...)
	lasting := func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(0, 1, 0) } // a line warns of one that ends within a week
	keys, trust := a.Files(a.IssueChanged("client", lasting))
	_, otherTrust := other.Files(other.Issue("client"))
	otherKeys, _ := other.Files(other.IssueChanged("client", lasting))
	mutual := []string{"-tls-ca", trust, "-tls-cert", keys, "-tls-key", keys}
	text, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	publicKey := writeFile(t, string(text), 0o644)
	forbidden := s.Path(t)
	holder(t, s, forbidden, "-auth-file", writeFile(t, "digest:a:b", 0o600), "-acl", "creator")
	cases := []struct {
		what  string
		flags []string
		code  int
		want  []string // parts of the line
	}{
		{"no server", []string{"-zk", "127.0.0.1:1"}, exitUnavailable, []string{"127.0.0.1:1", "connection refused", "check that ZooKeeper runs there", "-zk"}},
		{"no such name", []string{"-zk", "no-such-host.invalid"}, exitUnavailable, []string{"no-such-host.invalid", "check the host in -zk"}},
		{"HTTP", []string{"-zk", textServer(t, "HTTP/1.1 400 Bad Request\r\n\r\n")}, exitUnavailable, []string{"an HTTP server answers", "clientPort"}},
		{"SSH", []string{"-zk", textServer(t, "SSH-2.0-OpenSSH_9.2\r\n")}, exitUnavailable, []string{"an SSH server answers", "clientPort"}},
		{"Redis", []string{"-zk", textServer(t, "-ERR unknown command\r\n")}, exitUnavailable, []string{"a Redis server answers", "clientPort"}},
		{"hang-up", []string{"-zk", textServer(t, "")}, exitUnavailable, []string{"hangs up", "quorum", "-tls-ca"}},
		{"TLS port without TLS", []string{"-zk", secure}, exitUnavailable, []string{"-tls-ca"}},
		{"plain port with TLS", append([]string{"-zk", s.Addr()}, mutual...), exitUnavailable, []string{"hangs up", "secureClientPort"}},
		{"SSH with TLS", append([]string{"-zk", textServer(t, "SSH-2.0-OpenSSH_9.2\r\n")}, mutual...), exitUnavailable, []string{"an SSH server answers"}},
		{"no client certificate", []string{"-zk", secure, "-tls-ca", trust}, exitUnavailable, []string{"-tls-cert"}},
		{"client certificate of another authority", []string{"-zk", secure, "-tls-ca", trust, "-tls-cert", otherKeys, "-tls-key", otherKeys}, exitUnavailable, []string{"; the server wants a certificate that it trusts"}},
		{"server of another authority", []string{"-zk", secure, "-tls-ca", otherTrust}, exitUnavailable, []string{"unknown authority", "; -tls-ca"}},
		{"another server name", append([]string{"-zk", secure, "-tls-server-name", "elsewhere"}, mutual...), exitUnavailable, []string{"elsewhere", "; -tls-server-name"}},
		{"timeout out of range", []string{"-zk", s.Addr(), "-session", "10h"}, exitUnavailable, []string{"10h", "maxSessionTimeout", "-session"}},
		{"no such scheme", []string{"-zk", s.Addr(), "-auth-file", writeFile(t, "backup:password", 0o600)}, exitUnavailable, []string{`"backup"`, "digest:user:password"}},
		{"no permission", []string{"-zk", s.Addr(), "-lock", forbidden}, exitUnavailable, []string{"is not granted on " + forbidden, "-auth-file"}},
		{"public credentials", []string{"-zk", s.Addr(), "-auth-file", writeFile(t, "digest:a:b", 0o644)}, exitUsage, []string{"chmod 600"}},
		{"no credentials", []string{"-zk", s.Addr(), "-auth-file", writeFile(t, "# none\n", 0o600)}, exitUsage, []string{"no credentials", "digest:user:password"}},
		{"credentials without a scheme", []string{"-zk", s.Addr(), "-auth-file", writeFile(t, "\nsecret\n", 0o600)}, exitUsage, []string{"line 2", "scheme:credentials"}},
		{"digest without a user", []string{"-zk", s.Addr(), "-auth-file", writeFile(t, "digest:secret\n", 0o600)}, exitUsage, []string{"line 1", "user:password"}},
		{"no file of credentials", []string{"-zk", s.Addr(), "-auth-file", "/no/such"}, exitUsage, []string{"-auth-file", "/no/such"}},
		{"no file of an authority", []string{"-zk", s.Addr(), "-tls-ca", "/no/such"}, exitUsage, []string{"-tls-ca", "/no/such"}},
		{"no certificate in the file", []string{"-zk", s.Addr(), "-tls-ca", writeFile(t, "text", 0o600)}, exitUsage, []string{"BEGIN CERTIFICATE"}},
		{"key of another certificate", []string{"-zk", s.Addr(), "-tls-cert", keys, "-tls-key", otherKeys}, exitUsage, []string{"-tls-key " + otherKeys, "does not match"}},
		{"public key", []string{"-zk", secure, "-tls-ca", trust, "-tls-cert", keys, "-tls-key", publicKey}, 0, []string{"chmod 600 " + publicKey}},
		{"chroot that is missing", []string{"-zk", s.Addr() + s.Path(t)}, 0, []string{"the chroot was missing and is made"}},
	}
	start := func(i int, wait string) *lockrunProcess {
		flags := append([]string{"-lock", fmt.Sprintf("/failures-%d", i), "-session", "20s"}, cases[i].flags...)
		if cases[i].code == exitUnavailable {
			flags = append(flags, "-wait", wait) // for which it tries to connect, and meets the failure
		}
		return launch(t, "", append(flags, "--", "true")...)
	}
	var runs []*lockrunProcess
	for i := range cases {
		runs = append(runs, start(i, "8s"))
	}
	for i, c := range cases {
		code, text := runs[i].code(t), runs[i].stderr.String()
		if code == c.code && !strings.Contains(text, c.want[len(c.want)-1]) { // the machine is too slow
			p := start(i, "1m")
			code, text = p.code(t), p.stderr.String()
		}
		if code != c.code || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: code %d, want %d and one line; %s", c.what, code, c.code, text)
		}
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in %s", c.what, part, text)
			}
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "backup:password") {
			t.Errorf("%s: shows credentials: %s", c.what, text)
		}
		t.Logf("%s: %s", c.what, text)
	}
}

// A subcommand that makes no nodes refuses a chroot that is missing, and does not make it: its name is
// wrong. Raising the generation makes it.
func TestMissingChroot(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t) + "-mistyped"
		for _, args := range [][]string{{"ls", "/"}, {"who", "/lock"}, {"watch", "/lock"}, {"revoke", "/lock"}, {"break", "-yes", "/lock"},
			{"verify", actors.Token{Czxid: 1}.String(), "/lock"}, {"generation"}} {
			p := launch(t, "", append(args, "-zk", s.Addr()+root)...)
			if code, text := p.code(t), p.stderr.String(); code != exitUnavailable || !strings.Contains(text, "chroot "+root+": it does not exist: check its name") {
				t.Errorf("%q: code %d, %s", args, code, text)
			}
		}
		if exists, _, err := s.Client(t).Exists(root); exists || err != nil {
			t.Errorf("the chroot exists: %v, %v", exists, err)
		}
		if p := launch(t, "", "generation", "-raise", "-zk", s.Addr()+root); p.code(t) != 0 {
			t.Errorf("%s", &p.stderr)
		}
	})
}

// A file of credentials may be a pipe, as of bash's <(...).
func TestCredentialsFromPipe(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "", "-zk", s.Addr(), "-auth-file", pipe, "-acl", "creator", "-lock", s.Path(t), "--", "echo", "up")
	if err := os.WriteFile(pipe, []byte("digest:a:b\n"), 0); err != nil {
		t.Error(err)
	}
	if got := p.line(t); got != "up" {
		t.Errorf("printed %q", got)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("code %d; %s", code, &p.stderr)
	}
}
