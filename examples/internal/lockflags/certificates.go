package lockflags

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Certificates are a certificate with its key, and the authorities of the other side, as their files
// have them now: a handshake reads the files again if they have changed. Files that cannot be used
// change nothing, and a line says so. Warn gets a line a week and a day before the certificate ends,
// and when it has ended.
type Certificates struct {
	caFlag, ca, certFlag, cert, keyFlag, key string // flags and files; no file is ""
	warn                                     func(format string, args ...any)

	mu      sync.Mutex
	stamp   string           // of the files that were read last, also in vain
	pair    *tls.Certificate // nil without a file
	pool    *x509.CertPool   // nil without a file: the authorities of the system
	warned  time.Time        // of the last line about the end
	said    string           // that line's reason
	refused time.Time        // of the last line about a client's certificate
}

// Times of the lines about the end of a certificate.
const (
	week         = 7 * 24 * time.Hour
	day          = 24 * time.Hour
	lookAgain    = time.Hour
	refusalPause = 10 * time.Second // between lines about handshakes
)

// open reads the files for the first time.
func (c *Certificates) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp = Stamp(c.ca, c.cert, c.key)
	if err := c.readLocked(); err != nil {
		return err
	}
	if c.key != "" && isPublic(c.key) {
		c.warn("%s %s may be read by all users of this machine: chmod 600 %s", c.keyFlag, c.key, c.key)
	}
	c.warnOfEndLocked(time.Now())
	return nil
}

// Stamp returns a text that changes when one of the files changes. Make it before the files are read, so
// that a change meanwhile is seen the next time.
func Stamp(files ...string) (stamp string) {
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			stamp += err.Error() + "\n"
			continue
		}
		stamp += fmt.Sprintf("%d %d\n", info.Size(), info.ModTime().UnixNano())
	}
	return stamp
}

// readLocked takes over what the files have, if all of it can be used.
func (c *Certificates) readLocked() (err error) {
	var pair *tls.Certificate
	var pool *x509.CertPool
	if c.ca != "" {
		if pool, err = readPool(c.caFlag, c.ca); err != nil {
			return err
		}
	}
	if c.cert != "" {
		read, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return fmt.Errorf("%s %s, %s %s: %w", c.certFlag, c.cert, c.keyFlag, c.key, err)
		}
		pair = &read
	}
	if pair != nil && c.pair != nil && !pair.Leaf.Equal(c.pair.Leaf) {
		c.warned, c.said = time.Time{}, ""
	}
	c.pair, c.pool = pair, pool
	return nil
}

// Reread reads the files again, also if they have not changed. Its error is that they cannot be used;
// what they had before counts then.
func (c *Certificates) Reread() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp = Stamp(c.ca, c.cert, c.key)
	err := c.readLocked()
	c.warnOfEndLocked(time.Now())
	return err
}

// Watch reads the files again each hour if they have changed, and warns of an end that is near, until ctx
// ends: a program may have no handshake for weeks. It returns at once without certificates.
func (c *Certificates) Watch(ctx context.Context) {
	if c == nil {
		return
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.now()
		case <-ctx.Done():
			return
		}
	}
}

// now returns the certificate and the authorities for a handshake.
func (c *Certificates) now() (*tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stamp := Stamp(c.ca, c.cert, c.key); stamp != c.stamp {
		c.stamp = stamp
		if err := c.readLocked(); err != nil {
			c.warn("the changed files of certificates cannot be used, and those before count on: %v", err)
		}
	}
	c.warnOfEndLocked(time.Now())
	return c.pair, c.pool
}

// Ends returns when the certificate ends, the zero time without one.
func (c *Certificates) Ends() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair == nil {
		return time.Time{}
	}
	return c.pair.Leaf.NotAfter
}

// warnOfEndLocked warns of the end of the certificate: once from a week before it on, once from a day
// before it on, and at the handshakes after it, which the other side refuses.
func (c *Certificates) warnOfEndLocked(now time.Time) {
	if c.pair == nil {
		return
	}
	ends := c.pair.Leaf.NotAfter
	why := endOf(ends, now)
	if why == "" || why == c.said && (why != ended || now.Sub(c.warned) < refusalPause) {
		return
	}
	c.warned, c.said = now, why
	c.warn("the certificate of %s %s %s, at %s: renew the file, which is read again", c.certFlag, c.cert, why, ends.UTC().Format(time.RFC3339))
}

const ended = "has ended, and is refused"

// endOf returns what there is to say about the end of a certificate, or "".
func endOf(ends, now time.Time) string {
	switch left := ends.Sub(now); {
	case left < 0:
		return ended
	case left <= day:
		return "ends within a day"
	case left <= week:
		return "ends within a week"
	}
	return ""
}

// client returns the configuration of the side that connects. name is the name that the server's
// certificate must have; "" is the name of the server. servers lists all servers.
func (c *Certificates) client(name, servers string) *tls.Config {
	cfg := &tls.Config{ServerName: name}
	if c.cert != "" {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, _ := c.now()
			return pair, nil
		}
	}
	if c.ca == "" {
		return cfg // the authorities of the system
	}
	// Package tls takes the authorities from a field that does not change: the check is its own, by the
	// authorities that count now.
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		_, pool := c.now()
		names := []string{state.ServerName}
		if name != "" {
			names = []string{name}
		} else if state.ServerName == "" {
			names = addresses(servers) // an IP address is no name that TLS sends
		}
		var failed error
		for _, n := range names {
			if failed = verify(state, pool, n, x509.ExtKeyUsageServerAuth); failed == nil {
				return nil
			}
		}
		if failed == nil {
			failed = errors.New("the server has no name to verify")
		}
		return failed
	}
	return cfg
}

// addresses returns the IP addresses in a list of servers.
func addresses(servers string) (all []string) {
	list, _, _ := strings.Cut(servers, "/")
	for server := range strings.SplitSeq(list, ",") {
		server = strings.TrimSpace(server)
		if host, _, err := net.SplitHostPort(server); err == nil {
			server = host
		}
		if server = strings.Trim(server, "[]"); net.ParseIP(server) != nil {
			all = append(all, server)
		}
	}
	return all
}

// server returns the configuration of the side that is connected to, and wants a certificate of each
// client.
func (c *Certificates) server() *tls.Config {
	pair, pool := c.now()
	cfg := &tls.Config{Certificates: []tls.Certificate{*pair}, ClientCAs: pool, ClientAuth: tls.RequireAnyClientCert}
	// Package tls says nothing of a client that it refuses: the check is its own.
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		_, pool := c.now()
		err := verify(state, pool, "", x509.ExtKeyUsageClientAuth)
		if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is && invalid.Reason == x509.Expired {
			c.warnOfRefusal(invalid.Cert, err)
		}
		return err
	}
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := cfg.Clone()
		now.GetConfigForClient = nil
		pair, pool := c.now()
		now.Certificates, now.ClientCAs = []tls.Certificate{*pair}, pool
		now.NextProtos = []string{"h2"} // of gRPC, which sets it in the configuration that it is given
		return now, nil
	}
	return cfg
}

func (c *Certificates) warnOfRefusal(cert *x509.Certificate, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.refused) >= refusalPause {
		c.refused = now
		c.warn("a client is refused, as its certificate (%s) has ended or has not begun: %v", cert.Subject, err)
	}
}

// verify checks the certificates of the other side as package tls does.
func verify(state tls.ConnectionState, roots *x509.CertPool, name string, usage x509.ExtKeyUsage) error {
	certs := state.PeerCertificates
	if len(certs) == 0 {
		return errors.New("tls: the other side has no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range certs[1:] {
		between.AddCert(cert)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
	}
	return nil
}
