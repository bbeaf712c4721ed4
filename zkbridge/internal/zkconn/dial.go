package zkconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// open opens a connection, by Config.Dial if that is set, and secures it. raw is the connection
// below TLS. A lookup may go on until life ends, on a goroutine that lookups counts.
func (cfg *Settings) open(ctx, life context.Context, lookups *sync.WaitGroup, network, address string) (conn, raw net.Conn, err error) {
	if cfg.Dial != nil {
		raw, err = cfg.Dial(ctx, network, address)
	} else {
		raw, err = cfg.Resolver.dial(ctx, life, lookups, network, address)
	}
	if err != nil {
		return nil, nil, cfg.explainDial(err)
	}
	if conn, err = cfg.secure(ctx, raw, address); err != nil {
		raw.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// secure returns a TLS connection over raw, or raw without Config.TLS.
func (cfg *Settings) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	if cfg.TLS == nil {
		return raw, nil
	}
	t := cfg.TLS
	if t.ServerName == "" {
		t = t.Clone()
		t.ServerName, _, _ = net.SplitHostPort(address) // which was dialed
	}
	conn := tls.Client(raw, t)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, &handshakeError{"TLS", address, explainNoTLS(err)}
	}
	return conn, nil
}

// explainDial returns the error of a dial, with an explanation if no program listens at the
// address, the name of the host is unknown, or the server hangs up so soon that the dial fails.
func (cfg *Settings) explainDial(err error) error {
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: check that ZooKeeper runs there, and that the port is its clientPort", err)
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("%w: check the name of the server", err)
	case isHangUp(err) && cfg.TLS != nil:
		return explainNoTLS(err)
	case isHangUp(err):
		return explainNoAnswer(err, nil)
	}
	return err
}

// explainNoTLS returns the error of a TLS handshake, with an explanation if the server does not
// speak TLS.
func explainNoTLS(err error) error {
	var noTLS tls.RecordHeaderError
	switch {
	case isCertificateRefused(err):
		return explainCertificate(err)
	case errors.As(err, &noTLS):
		server := cmp.Or(protocolOf(noTLS.RecordHeader[:]), "a server without TLS")
		return fmt.Errorf("%s answers: check that the port is ZooKeeper's secureClientPort: %w", server, err)
	case isHangUp(err):
		return fmt.Errorf("the server hangs up, as it does on a port without TLS, and with as many connections of this address as its "+
			"maxClientCnxns allows: check that the port is ZooKeeper's secureClientPort: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errNoTLS, err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%w: set TLS.RootCAs to the authority of the servers' certificates", err)
	}
	return err
}

var errNoTLS = errors.New("the server has not answered yet: it is slow or overloaded, or the port is not ZooKeeper's secureClientPort")
