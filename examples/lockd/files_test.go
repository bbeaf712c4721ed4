//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Connections that say nothing take no file that lockd needs for ZooKeeper, or for a client from another
// address: it keeps its lock, and gets the next one when ZooKeeper was started again. The log has a
// line, not one for each connection.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	a, begin := zktest.NewAuthority(t), time.Now()
	keys, trust := a.Files(a.Issue("lockd"))
	p := startWith(t, []string{fileLimit + "=64"}, zk, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust)
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
	zk.Stop(t)
	zk.Start(t)
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
	if log := p.log(); strings.Count(log, line) == 0 || strings.Count(log, line) > linesSince(begin) || strings.Contains(log, "too many open files") {
		t.Errorf("%d lines say so; %s", strings.Count(log, line), log)
	}
}

// linesSince returns how many lines of one kind the log may have since a time: one in ten seconds.
func linesSince(begin time.Time) int { return 1 + int(time.Since(begin)/(10*time.Second)) }

// One peer has as many leases as it may have, and asks for more, also by streams without a Hello.
// A client from another address gets a lock, and keeps it while ZooKeeper is started again. The log has a
// line of each kind in ten seconds.
func TestLeasesOfOnePeer(t *testing.T) {
	t.Parallel()
	const most, streams = 8, 200
	zk, begin := zktest.Embedded(t), time.Now()
	p := start(t, zk, "-insecure", "-max-clients-per-peer", strconv.Itoa(most))
	for range most {
		p.client(t)
	}
	dialFrom := func(address net.IP, limit time.Duration) (*actors.Locks, error) {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return remote.Dial(ctx, p.addr, remote.DialConfig{Insecure: true, Config: actors.Config{
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				return from.DialContext(ctx, network, address)
			},
		}})
	}
	zktest.Eventually(t, timeLimit, func() bool {
		l, err := dialFrom(net.IPv4(127, 0, 0, 1), time.Second)
		if err == nil {
			l.Close()
			t.Error("one peer has more leases than it may have")
		}
		return err == nil || strings.Contains(err.Error(), "the most that it takes of one peer")
	}, "the peer is refused")
	conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range streams {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/actorlock.LockServer/Connect")
		if err == nil {
			stream.SendMsg(&messages.ClientFrame{Bye: true}) // without a Hello
		}
		for err == nil {
			err = stream.RecvMsg(&messages.ServerFrame{})
		}
	}
	locks, err := dialFrom(net.IPv4(127, 0, 0, 2), timeLimit)
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	defer locks.Close()
	held := hold(t, locks, zk.Path(t)+"/held")
	zk.Stop(t)
	zk.Start(t)
	if err := hold(t, locks, zk.Path(t)+"/next").Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Err(); err != nil {
		t.Error(err)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	lines, kind := map[string]int{}, regexp.MustCompile(`WARN (.*?) [a-z]+=`)
	for line := range strings.Lines(p.log()) {
		if m := kind.FindStringSubmatch(line); m != nil {
			lines[m[1]]++
		}
	}
	for what, n := range lines {
		if n > linesSince(begin) {
			t.Errorf("%d lines say %q; %s", n, what, p.log())
		}
	}
}
