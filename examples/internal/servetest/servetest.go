// Package servetest runs lock servers for the examples' tests.
package servetest

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Start runs a lock server until the test ends, or until stop is called, and returns its address. stop
// cuts its clients off, as a kill of its process does. A lease of 0 is the default. secured is the
// configuration of TLS, nil for none.
func Start(t testing.TB, zk *zktest.Server, lease time.Duration, secured *tls.Config) (addr string, stop func()) {
	t.Helper()
	locks, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{OmitHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	server, err := remote.NewServer(locks, remote.ServerConfig{Lease: lease, Insecure: secured == nil})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := server.GRPC(secured)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); streams.Serve(listener) }()
	stop = func() { streams.Stop(); <-ended }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}
