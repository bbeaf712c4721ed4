package zkbridge

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// authority issues certificates for a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t}
	template := template("authority", 1)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = a.sign(template)
	return a
}

func template(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
}

func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	must(a.t, err)
	c, err = x509.ParseCertificate(der)
	must(a.t, err)
	return c, key
}

// issue gives a certificate for both sides of a connection to localhost.
func (a *authority) issue(name string) tls.Certificate {
	c := template(name, 2)
	c.DNSNames = []string{"localhost"}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert, key := a.sign(c)
	return tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// files writes what Java wants: the server's key with its certificates, and whom
// to trust.
func (a *authority) files(c tls.Certificate) (keys, trust string) {
	dir := a.t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must(a.t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, cert := range c.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	}
	keys, trust = filepath.Join(dir, "keys.pem"), filepath.Join(dir, "trust.pem")
	must(a.t, os.WriteFile(keys, text, 0o600))
	must(a.t, os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	return keys, trust
}

// secureServers gives the secure ports of both servers, which want a certificate of
// clients, and the server itself if it is a real one.
func secureServers(t *testing.T, a *authority, f func(t *testing.T, s *zktest.Server, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.issue("server")},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool()})
		must(t, err)
		embedded.Run(t, embedded.Config{Listener: l, TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute})
		f(t, nil, strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1))
	})
	t.Run("zookeeper", func(t *testing.T) {
		keys, trust := a.files(a.issue("server"))
		port := freePort(t)
		s := zktest.Own(t,
			zktest.Setting("secureClientPort", port), zktest.Setting("secureClientPortAddress", "127.0.0.1"),
			zktest.Setting("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
			zktest.Setting("ssl.keyStore.location", keys), zktest.Setting("ssl.keyStore.type", "PEM"),
			zktest.Setting("ssl.trustStore.location", trust), zktest.Setting("ssl.trustStore.type", "PEM"),
			zktest.Setting("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"))
		f(t, s, "localhost:"+port)
	})
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	mutual := &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue("client")}}
	secureServers(t, a, func(t *testing.T, s *zktest.Server, addr string) {
		var log record
		b := connected(t, log.of(t, Config{Servers: addr, TLS: mutual, Auth: digest("a")}))
		u := newUser(t, b)
		node := u.created("/tls", "n-").GetNode()
		u.watch("/tls", node)
		u.release("/tls", node)
		next[*messages.Wake](t, u.peer)
		next[*messages.NodeReleased](t, u.peer)
		must(t, b.Close())
		if mutual.ServerName != "" {
			t.Errorf("the user's configuration was changed")
		}
		for _, c := range []struct {
			name string
			cfg  *tls.Config
			says string
		}{
			{"no certificate of ours", &tls.Config{RootCAs: a.pool()}, "certificate"},
			{"another authority", &tls.Config{RootCAs: newAuthority(t).pool()}, "certificate signed by unknown authority"},
			{"another name", &tls.Config{RootCAs: a.pool(), Certificates: mutual.Certificates, ServerName: "elsewhere"}, "elsewhere"},
			{"no TLS", nil, "handshake with"},
		} {
			b := open(t, Config{Servers: addr, TLS: c.cfg, ConnectTimeout: patience})
			attemptFails(t, b, c.says)
			if b.Session().Epoch != 0 {
				t.Errorf("%s: connected", c.name)
			}
		}
		if s != nil { // the certificate makes the client somebody
			u := newUser(t, connected(t, Config{Servers: addr, TLS: mutual, ACL: CreatorAll()}))
			u.created("/x509", "n-")
			if _, _, err := s.Client(t).Get("/x509"); err == nil {
				t.Error("a stranger reads /x509")
			}
		}
	})
}

// TestNoTLSBehindPort has servers without TLS.
func TestNoTLSBehindPort(t *testing.T) {
	for _, c := range []struct{ does, says string }{
		{"", "the server does not answer: check that the port"},
		{"hang up", "the server hangs up, as it does on a port without TLS: check that the port"},
		{"HTTP/1.1 400 Bad Request\r\n", "an HTTP server answers: check that the port"},
		{"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server answers: check that the port"},
		{"hello", "a server without TLS answers: check that the port"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{Servers: "port:1", SessionTimeout: time.Second, ConnectTimeout: 50 * time.Millisecond, TLS: &tls.Config{},
				Dial: piped(func(conn net.Conn) {
					if c.does == "hang up" {
						conn.Read(make([]byte, 10_000)) // the whole ClientHello
						return
					}
					go io.WriteString(conn, c.does)
					io.Copy(io.Discard, conn)
				})})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Connected(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q: %v", c.does, err)
			}
		})
	}
}

// TestTLSHangs has a server that accepts and does not go on with TLS.
func TestTLSHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Servers: "mute:1", SessionTimeout: time.Second, ConnectTimeout: 50 * time.Millisecond, TLS: &tls.Config{},
			Dial: piped(func(conn net.Conn) { io.Copy(io.Discard, conn) })})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "TLS with mute:1") {
			t.Errorf("%v", err)
		}
	})
}
