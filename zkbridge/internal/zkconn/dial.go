package zkconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
)

// open opens a connection, by Config.Dial if there is one, and secures it; raw is the
// connection below TLS. A lookup may go on until life ends, on a goroutine that lookups counts.
func (s *Config) open(ctx, life context.Context, lookups *sync.WaitGroup, network, address string) (conn, raw net.Conn, err error) {
	if s.Dial != nil {
		raw, err = s.Dial(ctx, network, address)
	} else {
		raw, err = s.Resolver.dial(ctx, life, lookups, network, address)
	}
	if err != nil {
		return nil, nil, err
	}
	if conn, err = s.secure(ctx, raw, address); err != nil {
		raw.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// secure lays TLS over a connection, if that is asked for.
func (s *Config) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	if s.TLS == nil {
		return raw, nil
	}
	cfg := s.TLS
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS with %s: %w", address, err)
	}
	return conn, nil
}
