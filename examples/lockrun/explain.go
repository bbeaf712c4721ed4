package main

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
)

// plainError is an error of the library with the words of lockrun: with flags in place of Go's
// names, and with an advice.
type plainError struct{ error }

func (e plainError) Unwrap() error { return e.error }

func (e plainError) Error() string { return flagNames.Replace(e.error.Error()) + advice(e.error) }

var flagNames = strings.NewReplacer("zkbridge: ", "", "actors: ", "", "invalid request: ", "", "Config.TLS.Certificates", "-tls-cert", "Config.TLS", "-tls-ca", "Config.MaxReply", "-max-reply",
	"SessionTimeout is", "-session",
	", and Config.RequireChroot is set", "",
	": set TLS.RootCAs to the authority of the servers' certificates", "")

// plain returns nil for nil.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return plainError{err}
}

// advice returns the flag or the server to check, or "" if lockrun does not know it.
func advice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var lookup *net.DNSError
	switch text := err.Error(); {
	case strings.Contains(text, "error reading server preface") && !strings.Contains(text, "remote error: tls:"), // no alert of TLS
		strings.Contains(text, "authentication handshake failed: EOF"):
		return "; if ZooKeeper is there, -zk names it in place of -server"
	case strings.Contains(text, "accepts connections and hangs up"):
		return "; if a lock server is there, -server names it in place of -zk"
	case errors.As(err, &authority), strings.Contains(text, "signed by unknown authority"): // gRPC has the text alone
		return "; -tls-ca names the file with the server's authority"
	case errors.As(err, &host):
		return "; -tls-server-name gives the name in the server's certificate"
	case strings.Contains(text, "certificate of the client"):
		return ": -tls-cert, -tls-key"
	case strings.Contains(text, "remote error: tls:"):
		return "; the server wants a certificate that it trusts: -tls-cert, -tls-key"
	case errors.Is(err, zkbridge.ErrSessionTimeout):
		return "; -session asks for another one"
	case strings.Contains(text, "refuses the credentials"):
		return "; look at -auth-file: a line is scheme:credentials, as in digest:user:password"
	case errors.Is(err, actors.ErrNoAuth):
		return "; -auth-file and -tls-cert give lockrun other credentials"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; -zk and -server have host and port"
	case errors.As(err, &lookup):
		return "; check the host in -zk or -server"
	}
	return ""
}
