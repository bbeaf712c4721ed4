package zkbridge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// ACL grants rights on a node, zk.PermRead and so on, to an identity of a scheme.
type ACL = zk.ACL

// Auth identifies a client to ZooKeeper, which grants rights to identities. What is printed of an
// Auth leaves out the credential.
type Auth struct {
	Scheme     string // such as "digest"; "sasl" is not supported
	Credential string // for digest, "user:password"
}

// String implements fmt.Stringer.
func (a Auth) String() string { return a.Scheme + ":(secret)" }

// GoString implements fmt.GoStringer.
func (a Auth) GoString() string {
	return fmt.Sprintf("zkbridge.Auth{Scheme:%q, Credential:(secret)}", a.Scheme)
}

// MarshalText implements encoding.TextMarshaler, which JSON and loggers use.
func (a Auth) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// CreatorAll returns an ACL for Config that grants all rights to the identity that made the node,
// by Config.Auth or a TLS certificate, and none to other identities.
func CreatorAll() []zk.ACL { return zk.AuthACL(zk.PermAll) }

func checkAuth(list []Auth) error {
	for i, a := range list {
		switch {
		case a.Scheme == "":
			return fmt.Errorf("zkbridge: Auth %d has no Scheme; \"digest\" is the usual one", i)
		case a.Scheme == "sasl":
			return fmt.Errorf("zkbridge: Auth %d: the scheme sasl is not supported: \"digest\" is, and x509 by a certificate in TLS", i)
		case a.Scheme == "world", a.Scheme == "auth":
			return fmt.Errorf("zkbridge: Auth %d: the scheme %s is one of ACLs, and not of logins; \"digest\" is the usual one", i, a.Scheme)
		case a.Scheme == "digest" && !strings.Contains(a.Credential, ":"):
			return fmt.Errorf("zkbridge: Auth %d: a Credential of the scheme digest is \"user:password\", and this one has no colon", i)
		case len(a.Scheme)+len(a.Credential) > zkconn.MaxRequest:
			return fmt.Errorf("zkbridge: Auth %d is longer than %d bytes", i, zkconn.MaxRequest)
		}
	}
	return nil
}

// checkACL returns an error for an ACL that a server would refuse at the first create.
func (cfg Config) checkACL() error {
	for i, a := range cfg.ACL {
		switch {
		case a.Scheme == "":
			return fmt.Errorf("zkbridge: ACL %d has no Scheme", i)
		case a.Perms <= 0 || a.Perms > zk.PermAll:
			return fmt.Errorf("zkbridge: ACL %d: Perms %d must be from 1 to %d", i, a.Perms, zk.PermAll)
		case a.Scheme == "auth" && len(cfg.Auth) == 0 && cfg.TLS == nil:
			return fmt.Errorf("zkbridge: ACL %d grants rights to the creator of a node: that needs Auth, or TLS with a certificate", i)
		}
	}
	if n := zkconn.ACLBytes(cfg.ACL); n > writer.MaxBytes {
		return fmt.Errorf("zkbridge: ACL of %d bytes: the limit is %d", n, writer.MaxBytes)
	}
	if cfg.ACL != nil && len(cfg.ACL) == 0 {
		return errors.New("zkbridge: ACL is empty, and not nil: no client would have a right")
	}
	return nil
}
