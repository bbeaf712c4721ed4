//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A client needs a certificate of the authority, and is told so.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	a, other := zktest.NewAuthority(t), zktest.NewAuthority(t)
	keys, trust := a.Files(a.Issue("lockd"))
	p := start(t, zk, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust)
	addr := strings.Replace(p.addr, "127.0.0.1", "localhost", 1) // the name in the certificate
	locks, err := dial(t, addr, &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Issue("client")}})
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	defer locks.Close()
	if err := hold(t, locks, zk.Path(t)).Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name    string
		secured *tls.Config
		want    string
	}{
		{"no certificate", &tls.Config{RootCAs: a.Pool()}, "it may want a certificate of the client"},
		{"a certificate of another authority", &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{other.Issue("client")}},
			"it may not trust the certificate of the client"},
		{"another authority of the server", &tls.Config{RootCAs: other.Pool(), Certificates: []tls.Certificate{a.Issue("client")}}, "unknown authority"},
		{"no TLS", nil, "it may want TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			zktest.Eventually(t, timeLimit, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				locks, err := remote.Dial(ctx, addr, remote.DialConfig{Config: actors.Config{TLS: c.secured}, Insecure: c.secured == nil})
				if err == nil {
					locks.Close()
					t.Fatal("the client is accepted")
				}
				return strings.Contains(err.Error(), c.want) // not yet, where the machine is too slow for an attempt
			}, c.want)
		})
	}
}

// A renewed certificate and another authority of the clients count from the next handshake on, and
// SIGHUP ends nothing: what a client holds it keeps.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	path := zk.Path(t)
	one, two := zktest.NewAuthority(t), zktest.NewAuthority(t)
	keys, trust := one.Files(one.Issue("lockd"))
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte("allow localhost "+path+" acquire\n"), 0o600); err != nil { // the name in the certificates
		t.Fatal(err)
	}
	p := start(t, zk, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust, "-allow", rules)
	addr := strings.Replace(p.addr, "127.0.0.1", "localhost", 1)
	as := func(limit time.Duration, a, trusted *zktest.Authority, change func(*x509.Certificate)) (*actors.Locks, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return remote.Dial(ctx, addr, remote.DialConfig{Config: actors.Config{TLS: &tls.Config{RootCAs: trusted.Pool(),
			Certificates: []tls.Certificate{a.IssueChanged("client", change)}}}})
	}
	same := func(*x509.Certificate) {}
	first, err := as(timeLimit, one, one, same)
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	defer first.Close()
	held := hold(t, first, path)
	if _, err := first.Mutex("/elsewhere").Lock(t.Context()); !errors.Is(err, actors.ErrNoAuth) || !strings.Contains(err.Error(), `"localhost" may not acquire /elsewhere: no rule`) {
		t.Errorf("no rule: %v", err)
	}
	ended := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	zktest.Eventually(t, timeLimit, func() bool {
		if late, err := as(time.Second, one, one, ended); err == nil {
			late.Close()
			t.Fatal("a client whose certificate has ended is accepted")
		}
		return strings.Contains(p.log(), "a client is refused, as its certificate (CN=client) has ended")
	}, "a line about the client whose certificate has ended")
	renewed, trustAgain := two.Files(two.Issue("lockd"))
	for from, to := range map[string]string{renewed: keys, trustAgain: trust} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	p.signal(t, syscall.SIGHUP)
	zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(p.log(), "certificates and rules are read again") }, "a line about SIGHUP")
	second, err := as(timeLimit, two, two, same)
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	defer second.Close()
	zktest.Eventually(t, timeLimit, func() bool {
		former, err := as(time.Second, one, two, same)
		if err == nil {
			former.Close()
			t.Fatal("a client of the former authority is accepted")
		}
		return strings.Contains(err.Error(), "it may not trust the certificate of the client")
	}, "the client of the former authority is refused")
	if err := held.Err(); err != nil {
		t.Error(err)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := hold(t, second, path).Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"level=ERROR", "time=20", "ends within a day"} {
		if text := p.log(); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// A certificate for ZooKeeper that is renewed on the disk counts for the next connection: clients keep their
// locks over a restart of the server behind the end of the former certificate.
func TestRenewedTowardsZooKeeper(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	a := zktest.NewAuthority(t)
	secure, settings := a.SecureSettings()
	zk := zktest.Own(t, settings...)
	ends := time.Now().Add(25 * time.Second) // lockd starts before
	keys, trust := a.Files(a.IssueChanged("lockd", func(c *x509.Certificate) { c.NotAfter = ends }))
	p := start(t, zk, "-zk", secure, "-zk-tls-ca", trust, "-zk-tls-cert", keys, "-zk-tls-key", keys, "-insecure", "-session", "40s")
	locks := p.client(t)
	held := hold(t, locks, zk.Path(t))
	renewed, _ := a.Files(a.Issue("lockd"))
	if err := os.Rename(renewed, keys); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(ends) + time.Second) // the end of a certificate is a time
	zk.Stop(t)
	zk.Start(t)
	if err := hold(t, locks, zk.Path(t)+"/next").Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Errorf("%v; %s", err, p.log())
	}
	if text := p.log(); !strings.Contains(text, "connection to ZooKeeper is back") {
		t.Error(text)
	}
}
