package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
)

// server is how to reach ZooKeeper.
type server struct {
	servers             string
	ca, cert, key, name string // of TLS
	authFile            string
	acl                 string
	session             time.Duration
}

func (s *server) define(f *flags) {
	f.StringVar(&s.servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181; zk1:2181/app is below the chroot /app")
	f.StringVar(&s.ca, "tls-ca", "", "connect by TLS, and trust the certificates in this PEM `file` (default: those of the system)")
	f.StringVar(&s.cert, "tls-cert", "", "connect by TLS, with the client certificate in this PEM `file`")
	f.StringVar(&s.key, "tls-key", "", "the key of -tls-cert, a PEM `file`")
	f.StringVar(&s.name, "tls-server-name", "", "connect by TLS, and expect this `name` in the server's certificate (default: the host in -zk)")
	f.StringVar(&s.authFile, "auth-file", "", "a `file` of credentials, one scheme:credentials per line, as in digest:user:password")
	f.StringVar(&s.acl, "acl", "world", "the `rights` on new nodes: world grants all rights to all clients, creator only to clients with the same credentials")
	f.DurationVar(&s.session, "session", 20*time.Second, "the session timeout: how long a lock outlives a client that is cut off")
	f.fromEnv = []string{"zk", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "auth-file", "acl", "session"}
	f.files = append(f.files, "tls-ca", "tls-cert", "tls-key", "auth-file")
	f.values["acl"] = "creator world"
}

// authVariable is the environment variable that has credentials, in the format of an -auth-file.
const authVariable = "ACTORLOCK_AUTH"

const credentialsHelp = authVariable + " has credentials as the lines of an -auth-file. Credentials are never part of a command line."

var errNoServers = errors.New("-zk is missing: it must name the ZooKeeper servers, as in -zk zk1:2181,zk2:2181, or set " + envName("zk"))

func (s *server) check() error {
	switch {
	case s.servers == "":
		return errNoServers
	case s.session <= 0:
		return fmt.Errorf("-session %v: it must be positive", s.session)
	case s.acl != "world" && s.acl != "creator":
		return fmt.Errorf("-acl %q is not available: accepted is creator, world", s.acl)
	case s.cert != "" && s.key == "":
		return errors.New("-tls-key is missing: it must name the file with the key of -tls-cert")
	case s.cert == "" && s.key != "":
		return errors.New("-tls-cert is missing: it must name the file with the certificate of -tls-key")
	case s.acl == "creator" && s.cert == "" && s.authFile == "" && os.Getenv(authVariable) == "":
		return errors.New("-acl creator: it needs credentials, by -auth-file, " + authVariable + " or -tls-cert")
	}
	return nil
}

// config returns the configuration of a connection. The errors concern the command line and the
// files that it names.
func (s *server) config() (actors.Config, error) {
	cfg := actors.Config{SessionTimeout: s.session, Margin: s.margin()}
	var err error
	if cfg.TLS, err = s.tls(); err != nil {
		return cfg, err
	}
	if cfg.Auth, err = s.auth(); err != nil {
		return cfg, err
	}
	if s.acl == "creator" {
		cfg.ACL = zkbridge.CreatorAll()
	}
	return cfg, nil
}

// margin returns the time before the possible expiry of the session at which a lock counts as
// lost. The command has the first half of it to end after SIGTERM.
func (s *server) margin() time.Duration { return s.session / 5 }

// outageLimit returns how long lockrun waits for ZooKeeper to come back.
func (s *server) outageLimit() time.Duration { return max(s.session, 5*time.Second) }

// tls returns nil without a flag of TLS.
func (s *server) tls() (*tls.Config, error) {
	if s.ca == "" && s.cert == "" && s.name == "" {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: s.name}
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("-tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("-tls-ca %s: it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", s.ca)
		}
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("-tls-cert %s, -tls-key %s: %w", s.cert, s.key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
		if isPublic(s.key) {
			warn("-tls-key %s may be read by all users of this machine: chmod 600 %s", s.key, s.key)
		}
	}
	return cfg, nil
}

// auth returns the credentials of the -auth-file, or of the environment without one.
func (s *server) auth() ([]zkbridge.Auth, error) {
	if s.authFile == "" {
		return parseAuth(os.Getenv(authVariable), authVariable)
	}
	text, err := os.ReadFile(s.authFile)
	if err != nil {
		return nil, fmt.Errorf("-auth-file: %w", err)
	}
	if isPublic(s.authFile) {
		return nil, fmt.Errorf("-auth-file %s may be read by all users of this machine: chmod 600 %s", s.authFile, s.authFile)
	}
	auth, err := parseAuth(string(text), "-auth-file "+s.authFile)
	if err == nil && len(auth) == 0 {
		err = fmt.Errorf("-auth-file %s has no credentials: a line is scheme:credentials, as in digest:user:password", s.authFile)
	}
	return auth, err
}

// isPublic reports whether a file may be read or written by all users. It returns false where
// permissions are not those of Unix, and for pipes.
func isPublic(file string) bool {
	info, err := os.Stat(file)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode()&0o006 != 0
}

// parseAuth returns the credentials of a text with one scheme:credentials per line. It ignores
// empty lines and those that begin with #. Its errors do not show the text.
func parseAuth(text, source string) (all []zkbridge.Auth, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scheme, credential, _ := strings.Cut(line, ":")
		switch {
		case scheme == "" || credential == "" || strings.ContainsAny(scheme, " \t"):
			return nil, fmt.Errorf("%s, line %d: it must be scheme:credentials, as in digest:user:password", source, n)
		case scheme == "digest" && !strings.Contains(credential, ":"):
			return nil, fmt.Errorf("%s, line %d: credentials of the scheme digest are user:password, as in digest:user:password", source, n)
		}
		all = append(all, zkbridge.Auth{Scheme: scheme, Credential: credential})
	}
	return all, nil
}
