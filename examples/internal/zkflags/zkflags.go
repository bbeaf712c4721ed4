// Package zkflags has the examples' flags for a ZooKeeper ensemble, also a secured one.
package zkflags

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
)

// Flags are the values of the flags.
type Flags struct {
	Servers  string        // empty if -zk is missing
	Session  time.Duration // the session timeout
	MaxReply int           // bytes of one answer of ZooKeeper; 0 is the library's default
	// Warn prints a warning. It must not be nil.
	Warn func(format string, args ...any)

	ca, cert, key, name string // of TLS
	authFile            string
	acl                 string
}

// Names are the names of the flags, which the environment sets as well: see EnvName.
var Names = []string{"zk", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "auth-file", "acl", "session", "max-reply"}

// Files are the names of the flags whose values are files.
var Files = []string{"tls-ca", "tls-cert", "tls-key", "auth-file"}

// ACLs are the values of the flag acl.
var ACLs = []string{"creator", "world"}

// Define defines the flags in set.
func (f *Flags) Define(set *flag.FlagSet) {
	set.StringVar(&f.Servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181; zk1:2181/app is below the chroot /app")
	set.StringVar(&f.ca, "tls-ca", "", "connect by TLS, and trust the certificates in this PEM `file` (default: those of the system)")
	set.StringVar(&f.cert, "tls-cert", "", "connect by TLS, with the client certificate in this PEM `file`")
	set.StringVar(&f.key, "tls-key", "", "the key of -tls-cert, a PEM `file`")
	set.StringVar(&f.name, "tls-server-name", "", "connect by TLS, and expect this `name` in the server's certificate (default: the host in -zk)")
	set.StringVar(&f.authFile, "auth-file", "", "a `file` of credentials, one scheme:credentials per line, as in digest:user:password")
	set.StringVar(&f.acl, "acl", "world", "the `rights` on new nodes: world grants all rights to all clients, creator only to clients with the same credentials")
	DurationVar(set, &f.Session, "session", 20*time.Second, "the session timeout: the `duration` for which a lock outlives a client that is cut off")
	define(set, &f.MaxReply, "max-reply", parseSize, "the `size` of the largest answer of ZooKeeper to read, as in 16MiB (default: 4MiB, enough for a directory with 80,000 nodes)")
}

// EnvName returns the name of the environment variable for a flag: ACTORLOCK_TLS_CA for tls-ca.
func EnvName(flag string) string {
	return "ACTORLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ReadEnvironment sets the flags of Names that the command line does not have. The caller has
// parsed set.
func ReadEnvironment(set *flag.FlagSet, lookup func(string) (string, bool)) error {
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range Names {
		value, ok := lookup(EnvName(name))
		if !ok || value == "" || given[name] {
			continue
		}
		if err := set.Set(name, value); err != nil {
			return fmt.Errorf("environment variable %s: %q: %w", EnvName(name), value, err)
		}
	}
	return nil
}

// authVariable is the environment variable that has credentials, in the format of an -auth-file.
const authVariable = "ACTORLOCK_AUTH"

// AuthHelp is the help for credentials in the environment.
const AuthHelp = authVariable + " has credentials as the lines of an -auth-file. Credentials are never part of a command line."

// errNoServers is the error of a missing -zk.
var errNoServers = errors.New("-zk is missing: it must name the ZooKeeper servers, as in -zk zk1:2181,zk2:2181, or set " + EnvName("zk"))

// Check returns an error for flags that do not fit. It does not read files.
func (f *Flags) Check() error {
	switch {
	case f.Servers == "":
		return errNoServers
	case f.Session <= 0:
		return fmt.Errorf("-session %v: it must be positive", f.Session)
	case f.MaxReply < 0 || f.MaxReply > 0 && f.MaxReply < 1<<20:
		return fmt.Errorf("-max-reply %d: it must be 1MiB or more", f.MaxReply)
	case f.acl != "world" && f.acl != "creator":
		return fmt.Errorf("-acl %q is not available: accepted is %s", f.acl, strings.Join(ACLs, ", "))
	case f.cert != "" && f.key == "":
		return errors.New("-tls-key is missing: it must name the file with the key of -tls-cert")
	case f.cert == "" && f.key != "":
		return errors.New("-tls-cert is missing: it must name the file with the certificate of -tls-key")
	case f.acl == "creator" && f.cert == "" && f.authFile == "" && os.Getenv(authVariable) == "":
		return errors.New("-acl creator: it needs credentials, by -auth-file, " + authVariable + " or -tls-cert")
	}
	return nil
}

// Config returns the configuration of a connection. The errors concern the command line and the
// files that it names.
func (f *Flags) Config() (actors.Config, error) {
	cfg := actors.Config{SessionTimeout: f.Session, MaxReply: f.MaxReply}
	var err error
	if cfg.TLS, err = f.tls(); err != nil {
		return cfg, err
	}
	if cfg.Auth, err = f.auth(); err != nil {
		return cfg, err
	}
	if f.acl == "creator" {
		cfg.ACL = zkbridge.CreatorAll()
	}
	return cfg, nil
}

// tls returns nil without a flag of TLS.
func (f *Flags) tls() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" && f.name == "" {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: f.name}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("-tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("-tls-ca %s: it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("-tls-cert %s, -tls-key %s: %w", f.cert, f.key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
		if isPublic(f.key) {
			f.Warn("-tls-key %s may be read by all users of this machine: chmod 600 %s", f.key, f.key)
		}
	}
	return cfg, nil
}

// auth returns the credentials of the -auth-file, or of the environment without one.
func (f *Flags) auth() ([]zkbridge.Auth, error) {
	if f.authFile == "" {
		return parseAuth(os.Getenv(authVariable), authVariable)
	}
	text, err := os.ReadFile(f.authFile)
	if err != nil {
		return nil, fmt.Errorf("-auth-file: %w", err)
	}
	if isPublic(f.authFile) {
		return nil, fmt.Errorf("-auth-file %s may be read by all users of this machine: chmod 600 %s", f.authFile, f.authFile)
	}
	auth, err := parseAuth(string(text), "-auth-file "+f.authFile)
	if err == nil && len(auth) == 0 {
		err = fmt.Errorf("-auth-file %s has no credentials: a line is scheme:credentials, as in digest:user:password", f.authFile)
	}
	return auth, err
}

// isPublic reports whether a file may be read or written by all users. It returns false where
// permissions are not those of Unix, for pipes, and for a file on a mount that is read-only:
// Kubernetes mounts secrets so, with the mode 0644, into a container that has no other users, and
// no chmod can change them.
func isPublic(file string) bool {
	info, err := os.Stat(file)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode()&0o006 != 0 && !isReadOnly(file)
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
