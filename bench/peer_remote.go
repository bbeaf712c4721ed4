//go:build !compare

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
)

// remotePeers are clients of a lock server, which is another process of this binary.
var remotePeers = []peer{{
	name:    "actorlock-remote",
	about:   "this library, behind a lock server in a process of its own",
	server:  "zookeeper",
	version: func() string { return "this tree" },
	open:    openRemote,
	only:    remoteNames,
}, {
	name:     "grpc",
	about:    "a unary gRPC call for an acquire, and nothing for a release",
	server:   "zookeeper",
	version:  func() string { return grpc.Version },
	open:     openCalls,
	only:     remoteNames,
	unlocked: true,
}}

// serveLocksCommand is the first argument of a process that serves locks; the servers of ZooKeeper
// follow.
const serveLocksCommand = "serve-locks"

func init() {
	if len(os.Args) == 3 && os.Args[1] == serveLocksCommand {
		fmt.Fprintln(os.Stderr, serveLocks(os.Args[2]))
		os.Exit(exitFailed)
	}
}

// serveLocks prints the address of the lock server, and serves until its input ends.
func serveLocks(zk string) error {
	locks, err := actors.Connect(context.Background(), zk, actors.Config{SessionTimeout: sessionTimeout, OmitHolder: true})
	if err != nil {
		return err
	}
	server, err := remote.NewServer(locks, remote.ServerConfig{Insecure: true})
	if err != nil {
		return err
	}
	streams, err := server.GRPC(nil)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return streams.Serve(l)
}

// servedLocks is a process that serves locks.
type servedLocks struct {
	addr  string
	stdin io.Closer
	cmd   *exec.Cmd
}

func startLockServer(zk string) (*servedLocks, error) {
	s := &servedLocks{cmd: exec.Command(os.Args[0], serveLocksCommand, zk)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		s.stop()
		return nil, fmt.Errorf("the lock server has not started")
	}
	s.addr = lines.Text()
	return s, nil
}

func (s *servedLocks) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

type remoteDriver struct {
	actorlockDriver
	server *servedLocks
}

func openRemote(ctx context.Context, zk string) (driver, error) {
	server, err := startLockServer(zk)
	if err != nil {
		return nil, err
	}
	return &remoteDriver{actorlockDriver{mutex: func(l *actors.Locks, path string) handle { return l.Mutex(path) }}, server}, nil
}

func (d *remoteDriver) lock(ctx context.Context, a access) (locker, error) {
	for len(d.locks) <= a.connection {
		locks, err := remote.Dial(ctx, d.server.addr, remote.DialConfig{Insecure: true})
		if err != nil {
			return nil, err
		}
		d.locks = append(d.locks, locks)
	}
	return d.actorlockDriver.lock(ctx, a)
}

func (d *remoteDriver) close() {
	d.actorlockDriver.close()
	d.server.stop()
}

type callsDriver struct {
	server *servedLocks
	conns  []*grpc.ClientConn // by connection
}

func openCalls(_ context.Context, zk string) (driver, error) {
	server, err := startLockServer(zk)
	return &callsDriver{server: server}, err
}

func (d *callsDriver) lock(_ context.Context, a access) (locker, error) {
	for len(d.conns) <= a.connection {
		conn, err := grpc.NewClient(d.server.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		d.conns = append(d.conns, conn)
	}
	return caller{healthpb.NewHealthClient(d.conns[a.connection])}, nil
}

func (d *callsDriver) close() {
	for _, conn := range d.conns {
		_ = conn.Close()
	}
	d.server.stop()
}

type caller struct{ health healthpb.HealthClient }

func (c caller) acquire(ctx context.Context) error {
	_, err := c.health.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func (c caller) release(context.Context) error { return nil }
