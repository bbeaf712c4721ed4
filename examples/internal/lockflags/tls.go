package lockflags

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
)

// tlsFiles are the values of the flags of TLS of a client.
type tlsFiles struct {
	ca, cert, key, name string
	prefix              string // of the flags' names
}

// define defines the flags, and returns their names.
func (t *tlsFiles) define(set *flag.FlagSet, prefix string) []string {
	t.prefix = prefix
	set.StringVar(&t.ca, prefix+"tls-ca", "", "connect by TLS, and trust the certificates in this PEM `file` (default: those of the system)")
	set.StringVar(&t.cert, prefix+"tls-cert", "", "connect by TLS, with the client certificate in this PEM `file`")
	set.StringVar(&t.key, prefix+"tls-key", "", "the key of "+t.flag("cert")+", a PEM `file`")
	set.StringVar(&t.name, prefix+"tls-server-name", "", "connect by TLS, and expect this `name` in the server's certificate (default: the host of the server)")
	return []string{prefix + "tls-ca", prefix + "tls-cert", prefix + "tls-key", prefix + "tls-server-name"}
}

func (t *tlsFiles) flag(name string) string { return "-" + t.prefix + "tls-" + name }

// used reports whether a flag is set.
func (t *tlsFiles) used() bool { return t.ca != "" || t.cert != "" || t.key != "" || t.name != "" }

func (t *tlsFiles) check() error {
	switch {
	case t.cert != "" && t.key == "":
		return fmt.Errorf("%s is missing: it must name the file with the key of %s", t.flag("key"), t.flag("cert"))
	case t.cert == "" && t.key != "":
		return fmt.Errorf("%s is missing: it must name the file with the certificate of %s", t.flag("cert"), t.flag("key"))
	}
	return nil
}

// config returns nil without a flag of TLS. servers is the list of the servers to connect to.
func (t *tlsFiles) config(servers string, warn func(format string, args ...any)) (*tls.Config, *Certificates, error) {
	if !t.used() {
		return nil, nil, nil
	}
	c := &Certificates{caFlag: t.flag("ca"), ca: t.ca, certFlag: t.flag("cert"), cert: t.cert, keyFlag: t.flag("key"), key: t.key, warn: warn}
	if err := c.open(); err != nil {
		return nil, nil, err
	}
	return c.client(t.name, servers), c, nil
}

// ServerTLS are the values of the flags by which a server is known to its clients, and knows them.
type ServerTLS struct{ cert, key, clientCA string }

// Define defines the flags in set.
func (s *ServerTLS) Define(set *flag.FlagSet) {
	set.StringVar(&s.cert, "tls-cert", "", "the certificate that clients see, in this PEM `file`")
	set.StringVar(&s.key, "tls-key", "", "the key of -tls-cert, a PEM `file`")
	set.StringVar(&s.clientCA, "tls-client-ca", "", "serve clients with a certificate of an authority in this PEM `file`, and no others")
}

// Check returns an error unless all flags are set, or none and insecure.
func (s *ServerTLS) Check(insecure bool) error {
	switch {
	case *s == ServerTLS{} && !insecure:
		return errors.New("-tls-cert, -tls-key and -tls-client-ca are missing: they must name the files for mutual TLS, unless -insecure serves without")
	case *s != ServerTLS{} && insecure:
		return errors.New("-insecure and a flag of TLS for clients: choose one of them")
	}
	for _, f := range []struct{ name, value, what string }{
		{"-tls-cert", s.cert, "the certificate that clients see"},
		{"-tls-key", s.key, "the key of -tls-cert"},
		{"-tls-client-ca", s.clientCA, "the authority of the clients' certificates"},
	} {
		if f.value == "" && !insecure {
			return fmt.Errorf("%s is missing: it must name the file with %s", f.name, f.what)
		}
	}
	return nil
}

// Config returns the configuration of a server that wants a certificate of each client, and its
// certificates, or nil without the flags.
func (s *ServerTLS) Config(warn func(format string, args ...any)) (*tls.Config, *Certificates, error) {
	if s.cert == "" {
		return nil, nil, nil
	}
	c := &Certificates{caFlag: "-tls-client-ca", ca: s.clientCA, certFlag: "-tls-cert", cert: s.cert, keyFlag: "-tls-key", key: s.key, warn: warn}
	if err := c.open(); err != nil {
		return nil, nil, err
	}
	return c.server(), c, nil
}

// readPool returns the certificates in the file of a flag.
func readPool(flag, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s %s: it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", flag, file)
	}
	return pool, nil
}

// isPublic reports whether a file may be read or written by all users. It returns false where
// permissions are not those of Unix, for pipes, and for a file on a mount that is read-only:
// Kubernetes mounts secrets so, with the mode 0644, into a container that has no other users, and
// no chmod can change them.
func isPublic(file string) bool {
	info, err := os.Stat(file)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode()&0o006 != 0 && !isReadOnly(file)
}
