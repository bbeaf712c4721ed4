package lockflags

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// lines collects warnings.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) warn(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += fmt.Sprintf(format, args...) + "\n"
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// replace gives a file the content of another, as a renewal does.
func replace(t *testing.T, file, by string) {
	t.Helper()
	if err := os.Rename(by, file); err != nil {
		t.Fatal(err)
	}
}

// listen serves TLS, and returns the address and the common names of the clients.
func listen(t *testing.T, cfg *tls.Config) (addr string, clients <-chan string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	names := make(chan string, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if c := conn.(*tls.Conn); c.Handshake() == nil {
				names <- c.ConnectionState().PeerCertificates[0].Subject.CommonName
				c.Write([]byte("x"))
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String(), names
}

// connect makes one connection, and returns its error.
func connect(addr, name string, cfg *tls.Config) error {
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = name
	}
	conn, err := tls.Dial("tcp", addr, cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // the server's answer to the client's certificate
	return err
}

func withAddress(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }

// A client uses the certificate and trusts the authorities that its files have at the handshake.
func TestClientReadsAgain(t *testing.T) {
	one, two := zktest.NewAuthority(t), zktest.NewAuthority(t)
	both := one.Pool()
	_, trustTwo := two.Files(two.Issue("unused"))
	text, err := os.ReadFile(trustTwo)
	if err != nil || !both.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	ofOne, clients := listen(t, &tls.Config{Certificates: []tls.Certificate{one.IssueChanged("server", withAddress)}, ClientCAs: both, ClientAuth: tls.RequireAndVerifyClientCert})
	ofTwo, clientsOfTwo := listen(t, &tls.Config{Certificates: []tls.Certificate{two.IssueChanged("server", withAddress)}, ClientCAs: both, ClientAuth: tls.RequireAndVerifyClientCert})
	keys, trust := one.Files(one.Issue("first"))
	var said lines
	files := tlsFiles{ca: trust, cert: keys, key: keys}
	cfg, certificates, err := files.config("zk1:2181,"+ofOne+","+ofTwo+"/app", said.warn)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if err := connect(ofOne, name, cfg); err != nil || <-clients != "first" {
			t.Errorf("%s: %v", name, err)
		}
		if err := connect(ofTwo, name, cfg); err == nil || !strings.Contains(err.Error(), "signed by unknown authority") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := connect(ofOne, "other", cfg); err == nil || !strings.Contains(err.Error(), "not other") {
		t.Errorf("a server of another name: %v", err)
	}
	elsewhere, _, err := files.config("10.0.0.1:2181", said.warn)
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(ofOne, "127.0.0.1", elsewhere); err == nil || !strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("a server of an address that is not listed: %v", err)
	}
	renewed, trustAgain := two.Files(two.Issue("second"))
	replace(t, keys, renewed)
	replace(t, trust, trustAgain)
	if err := connect(ofTwo, "localhost", cfg); err != nil || <-clientsOfTwo != "second" {
		t.Error(err)
	}
	if err := connect(ofOne, "localhost", cfg); err == nil {
		t.Error("the former authority is trusted on")
	}
	if text := said.String(); !strings.Contains(text, "ends within a day") {
		t.Errorf("it says %q", text) // the certificates of the test last for an hour
	}
	if left := time.Until(certificates.Ends()); left <= 0 || left > time.Hour {
		t.Errorf("it ends in %v", left)
	}
	if err := os.WriteFile(keys, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := connect(ofTwo, "localhost", cfg); err != nil || <-clientsOfTwo != "second" {
			t.Error(err)
		}
	}
	if n := strings.Count(said.String(), "cannot be used"); n != 1 {
		t.Errorf("%d lines: %s", n, said.String())
	}
	if err := certificates.Reread(); err == nil {
		t.Error("half a file is read")
	}
}

// A server does the same, and says whom it refuses because of the time.
func TestServerReadsAgain(t *testing.T) {
	one, two := zktest.NewAuthority(t), zktest.NewAuthority(t)
	keys, trust := one.Files(one.Issue("server"))
	var said lines
	cfg, _, err := (&ServerTLS{cert: keys, key: keys, clientCA: trust}).Config(said.warn)
	if err != nil {
		t.Fatal(err)
	}
	addr, clients := listen(t, cfg)
	as := func(a, trusted *zktest.Authority, change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{RootCAs: trusted.Pool(), Certificates: []tls.Certificate{a.IssueChanged("client", change)}}
	}
	same := func(*x509.Certificate) {}
	if err := connect(addr, "localhost", as(one, one, same)); err != nil || <-clients != "client" {
		t.Error(err)
	}
	for what, client := range map[string]*tls.Config{
		"another authority": as(two, one, same),
		"no certificate":    {RootCAs: one.Pool()},
		"a server's usage":  as(one, one, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }),
	} {
		if err := connect(addr, "localhost", client); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if strings.Contains(said.String(), "is refused") {
		t.Error(said.String())
	}
	ended := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	for range 3 {
		if err := connect(addr, "localhost", as(one, one, ended)); err == nil {
			t.Error("a certificate that has ended is accepted")
		}
	}
	if n := strings.Count(said.String(), "a client is refused, as its certificate (CN=client) has ended"); n != 1 {
		t.Errorf("%d lines: %s", n, said.String())
	}
	renewed, trustAgain := two.Files(two.Issue("server"))
	replace(t, keys, renewed)
	replace(t, trust, trustAgain)
	if err := connect(addr, "localhost", as(two, two, same)); err != nil || <-clients != "client" {
		t.Error(err)
	}
	if err := connect(addr, "localhost", as(one, two, same)); err == nil {
		t.Error("a client of the former authority is accepted")
	}
}

func TestEndOf(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]string{week + 1: "", week: "ends within a week", day + 1: "ends within a week", day: "ends within a day",
		0: "ends within a day", -1: ended} {
		if got := endOf(now.Add(left), now); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
