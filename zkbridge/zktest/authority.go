package zktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Authority issues certificates for a test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a certificate of its own. It does not block.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	c := certificate("authority", 1)
	c.IsCA, c.BasicConstraintsValid = true, true
	c.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = a.sign(c)
	return a
}

func certificate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
}

func (a *Authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	a.must(err)
	c, err = x509.ParseCertificate(der)
	a.must(err)
	return c, key
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("zktest: %v", err)
	}
}

// Issue returns a certificate for both sides of a connection to localhost, valid for an hour.
func (a *Authority) Issue(name string) tls.Certificate {
	return a.IssueChanged(name, func(*x509.Certificate) {})
}

// IssueChanged is Issue for a certificate that change may change before it is signed.
func (a *Authority) IssueChanged(name string, change func(c *x509.Certificate)) tls.Certificate {
	a.t.Helper()
	c := certificate(name, 2)
	c.DNSNames = []string{"localhost"}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	change(c)
	cert, key := a.sign(c)
	return tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key}
}

// Pool returns a pool with the authority's certificate only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Files writes PEM files that last until the test ends: keys has the key of a certificate and its
// certificates, trust the authority's certificate. ZooKeeper reads them with the store type PEM.
func (a *Authority) Files(c tls.Certificate) (keys, trust string) {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	a.must(err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, cert := range c.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	}
	dir := a.t.TempDir()
	keys, trust = filepath.Join(dir, "keys.pem"), filepath.Join(dir, "trust.pem")
	a.must(os.WriteFile(keys, text, 0o600))
	a.must(os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	return keys, trust
}

// SecureSettings returns settings for Own, by which the server has a second port on 127.0.0.1, with
// TLS, and the address of that port. Clients need a certificate of the authority there.
func (a *Authority) SecureSettings() (addr string, settings []ServerOption) {
	a.t.Helper()
	keys, trust := a.Files(a.Issue("server"))
	reserved := reservePort()
	a.t.Cleanup(reserved.release)
	port := strconv.Itoa(reserved.number)
	for key, value := range map[string]string{
		"secureClientPort": port, "secureClientPortAddress": "127.0.0.1",
		"serverCnxnFactory":     "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location": keys, "ssl.keyStore.type": "PEM",
		"ssl.trustStore.location": trust, "ssl.trustStore.type": "PEM",
		"authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
	} {
		settings = append(settings, Setting(key, value))
	}
	return "localhost:" + port, settings
}
