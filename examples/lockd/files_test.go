//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Connections that say nothing take no file that lockd needs for ZooKeeper, or for a client from another
// address: it keeps its lock, and gets the next one when ZooKeeper's connections have broken. The log has a
// line, not one for each connection.
func TestSilentConnections(t *testing.T) {
	t.Setenv(fileLimit, "64")
	zk := zktest.Embedded(t)
	a := zktest.NewAuthority(t)
	keys, trust := a.Files(a.Issue("lockd"))
	p := start(t, zk, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust)
	for range 400 {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	locks, err := remote.Dial(ctx, "localhost:1", remote.DialConfig{Config: actors.Config{
		TLS: &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Issue("client")}},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return from.DialContext(ctx, network, p.addr)
		},
	}})
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	defer locks.Close()
	held := hold(t, locks, zk.Path(t)+"/held")
	zk.Embedded().DropConnections()
	if err := hold(t, locks, zk.Path(t)+"/next").Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := held.Err(); err != nil {
		t.Error(err)
	}
	if err := held.Unlock(ctx); err != nil {
		t.Error(err)
	}
	const line = "refuses a connection: its address has as many as one may have"
	if log := p.log(); strings.Count(log, line) == 0 || strings.Count(log, line) > 20 || strings.Contains(log, "too many open files") {
		t.Errorf("%d lines say so; %s", strings.Count(log, line), log)
	}
}
