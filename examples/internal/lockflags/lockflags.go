// Package lockflags has the examples' flags for the way to the locks: a ZooKeeper ensemble, also a
// secured one, or lock servers.
package lockflags

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge"
)

// Flags are the values of the flags.
type Flags struct {
	Servers     string        // empty if -zk is missing
	LockServers string        // empty if -server is missing
	Session     time.Duration // the session timeout of ZooKeeper
	MaxReply    int           // bytes of one answer of ZooKeeper; 0 is the library's default
	// Warn prints a warning. It must not be nil.
	Warn func(format string, args ...any)
	// Certificates are those of the connection once Config has returned, nil without TLS.
	Certificates *Certificates

	tls      tlsFiles
	insecure bool
	authFile string
	acl      string
	names    []string        // of the defined flags, in order
	given    map[string]bool // the flags that the command line or the environment sets
}

// onlyZooKeeper and onlyServer are the names of the flags that have no meaning with -server and -zk.
var (
	onlyZooKeeper = []string{"zk", "auth-file", "acl", "session", "max-reply"}
	onlyServer    = []string{"server", "insecure"}
)

// ACLs are the values of the flag acl.
var ACLs = []string{"creator", "world"}

// DefineZooKeeper defines the flags for an ensemble in set. The names of those of TLS have a prefix,
// as in -zk-tls-ca, for programs that have other flags of TLS. session is the default of -session.
func (f *Flags) DefineZooKeeper(set *flag.FlagSet, prefix string, session time.Duration) {
	set.StringVar(&f.Servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181; zk1:2181/app is below the chroot /app")
	tlsNames := f.tls.define(set, prefix)
	set.StringVar(&f.authFile, "auth-file", "", "a `file` of credentials for ZooKeeper, one scheme:credentials per line, as in digest:user:password")
	set.StringVar(&f.acl, "acl", "world", "the `rights` on new nodes: world grants all rights to all clients, creator only to clients with the same credentials")
	DurationVar(set, &f.Session, "session", session, "the session timeout: the `duration` for which a lock outlives a client of ZooKeeper that is cut off")
	SizeVar(set, &f.MaxReply, "max-reply", "the `size` of the largest answer of ZooKeeper to read, as in 16MiB (default: 4MiB, enough for a directory with 80,000 nodes)")
	f.names = slices.Concat([]string{"zk"}, tlsNames, []string{"auth-file", "acl", "session", "max-reply"})
}

// Define defines the flags for an ensemble, and those for lock servers in its place, in set.
func (f *Flags) Define(set *flag.FlagSet) {
	f.DefineZooKeeper(set, "", 20*time.Second)
	set.StringVar(&f.LockServers, "server", "", "in place of -zk: the lock `servers`, as in lock1:7400,lock2:7400, of which examples/lockd is one")
	set.BoolVar(&f.insecure, "insecure", false, "connect to the lock server without TLS")
	f.names = append(f.names, onlyServer...)
}

// Files returns the names of the defined flags whose values are files.
func (f *Flags) Files() (names []string) {
	for _, name := range f.names {
		if strings.HasSuffix(name, "tls-ca") || strings.HasSuffix(name, "tls-cert") || strings.HasSuffix(name, "tls-key") || name == "auth-file" {
			names = append(names, name)
		}
	}
	return names
}

// EnvName returns the name of the environment variable for a flag: ACTORLOCK_TLS_CA for tls-ca.
func EnvName(flag string) string {
	return "ACTORLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ReadEnvironment sets the defined flags that the command line does not have. With -zk or -server
// on the command line the environment does not set what belongs to the other. The caller has parsed
// set.
func (f *Flags) ReadEnvironment(set *flag.FlagSet, lookup func(string) (string, bool)) error {
	f.given = map[string]bool{}
	note := func(set *flag.Flag) { f.given[set.Name] = true }
	set.Visit(note)
	zooKeeper, server := f.given["zk"], f.given["server"]
	for _, name := range f.names {
		value, ok := lookup(EnvName(name))
		if !ok || value == "" || f.given[name] || server && slices.Contains(onlyZooKeeper, name) || zooKeeper && slices.Contains(onlyServer, name) {
			continue
		}
		if err := set.Set(name, value); err != nil {
			return fmt.Errorf("environment variable %s: %q: %w", EnvName(name), value, err)
		}
	}
	set.Visit(note)
	return nil
}

// authVariable is the environment variable that has credentials, in the format of an -auth-file.
const authVariable = "ACTORLOCK_AUTH"

// AuthHelp is the help for credentials in the environment.
const AuthHelp = authVariable + " has credentials as the lines of an -auth-file. Credentials are never part of a command line."

// Check returns an error for flags that do not fit. It does not read files. ReadEnvironment comes
// before it.
func (f *Flags) Check() error {
	if err := f.tls.check(); err != nil {
		return err
	}
	if f.LockServers != "" {
		return f.checkServer()
	}
	switch {
	case f.Servers == "":
		text := "-zk is missing: it must name the ZooKeeper servers, as in -zk zk1:2181,zk2:2181, or set " + EnvName("zk")
		if slices.Contains(f.names, "server") {
			text += "; -server names lock servers in its place"
		}
		return errors.New(text)
	case f.insecure:
		return errors.New("-insecure is for -server: a connection to ZooKeeper is without TLS unless a flag of TLS is set")
	case f.Session <= 0:
		return fmt.Errorf("-session %v: it must be positive", f.Session)
	case f.MaxReply < 0 || f.MaxReply > 0 && f.MaxReply < 1<<20:
		return fmt.Errorf("-max-reply %d: it must be 1MiB or more", f.MaxReply)
	case f.acl != "world" && f.acl != "creator":
		return fmt.Errorf("-acl %q is not available: accepted is %s", f.acl, strings.Join(ACLs, ", "))
	case f.acl == "creator" && f.tls.cert == "" && f.authFile == "" && os.Getenv(authVariable) == "":
		return fmt.Errorf("-acl creator: it needs credentials, by -auth-file, %s or %s", authVariable, f.tls.flag("cert"))
	}
	return nil
}

func (f *Flags) checkServer() error {
	if f.Servers != "" {
		return fmt.Errorf("-server %s and -zk %s: choose one of them", f.LockServers, f.Servers)
	}
	for _, name := range onlyZooKeeper {
		if f.given[name] {
			return fmt.Errorf("-%s is for -zk: the lock server of -server has its own, with which it was started", name)
		}
	}
	switch secured := f.tls.used(); {
	case !secured && !f.insecure:
		return errors.New("-server needs -tls-ca, -tls-cert and -tls-key for mutual TLS, or -insecure for none")
	case secured && f.insecure:
		return errors.New("-insecure and a flag of TLS: choose one of them")
	}
	return nil
}

// Place returns what the flags connect to, for people.
func (f *Flags) Place() string {
	if f.LockServers != "" {
		return "the lock server at " + f.LockServers
	}
	return "ZooKeeper at " + f.Servers
}

// Unreachable tries to reach each server by TCP, all at one time, and blocks until all have answered or
// ctx ends. Its error names those that cannot be reached; nil is none.
func (f *Flags) Unreachable(ctx context.Context) error {
	list, port := f.LockServers, "7400"
	if list == "" {
		list, _, _ = strings.Cut(f.Servers, "/")
		port = "2181"
	}
	servers := strings.Split(list, ",")
	failures := make([]error, len(servers))
	var all sync.WaitGroup
	for i, server := range servers {
		server = strings.TrimSpace(server)
		address := server
		if _, _, err := net.SplitHostPort(server); err != nil {
			address = net.JoinHostPort(strings.Trim(server, "[]"), port)
		}
		all.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				failures[i] = fmt.Errorf("the server %s cannot be reached: %w", server, err)
				return
			}
			conn.Close()
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// Connect opens the locks of the flags as actors.Connect or remote.Dial does. cfg is that of
// Config.
func (f *Flags) Connect(ctx context.Context, cfg actors.Config) (*actors.Locks, error) {
	if f.LockServers != "" {
		return remote.Dial(ctx, f.LockServers, remote.DialConfig{Config: cfg, Insecure: f.insecure})
	}
	return actors.Connect(ctx, f.Servers, cfg)
}

// Config returns the configuration of a connection. The errors concern the command line and the
// files that it names.
func (f *Flags) Config() (cfg actors.Config, err error) {
	servers := f.Servers
	if f.LockServers != "" {
		servers = f.LockServers
	}
	if cfg.TLS, f.Certificates, err = f.tls.config(servers, f.Warn); err != nil || f.LockServers != "" {
		return cfg, err
	}
	cfg.SessionTimeout, cfg.MaxReply = f.Session, f.MaxReply
	if cfg.Auth, err = f.auth(); err != nil {
		return cfg, err
	}
	if f.acl == "creator" {
		cfg.ACL = zkbridge.CreatorAll()
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
