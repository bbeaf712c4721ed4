package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
)

// connectLimit is how long lockd tries to connect at its start. Tests raise it, for machines that
// have other work.
var connectLimit = 15 * time.Second

// signals returns two contexts: one ends at the first SIGTERM or SIGINT, the other at the second.
func signals() (first, second context.Context) {
	all := make(chan os.Signal, 2)
	signal.Notify(all, syscall.SIGTERM, os.Interrupt)
	first, endFirst := context.WithCancelCause(context.Background())
	second, endSecond := context.WithCancelCause(context.Background())
	go func() {
		endFirst(fmt.Errorf("%v", <-all))
		endSecond(fmt.Errorf("%v, the second signal", <-all))
	}()
	return first, second
}

// rereadBySignal reads the files again at each of the signals until ctx ends.
func rereadBySignal(ctx context.Context, signals <-chan os.Signal, clients, zooKeeper *lockflags.Certificates, rules *allowFile, records *audit) {
	for {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		var failed error
		if clients != nil {
			failed = clients.Reread()
		}
		if zooKeeper != nil {
			failed = errors.Join(failed, zooKeeper.Reread())
		}
		if rules != nil {
			failed = errors.Join(failed, rules.reread())
		}
		if records != nil {
			records.reopen()
		}
		if failed != nil {
			warn("SIGHUP: what was read before counts on: %v", failed)
			continue
		}
		stderr.Info("SIGHUP: certificates and rules are read again")
	}
}

// run serves until a signal comes, and drains. It returns the exit code, with which the process
// must end: if the drain was cut short, nothing is closed.
func (o *lockdFlags) run(out io.Writer) (int, error) {
	stopped, hurried := signals()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	secured, certificates, err := o.clients.Config(o.Warn)
	if err != nil {
		return exitUsage, err
	}
	serverConfig := o.limits
	serverConfig.Lease, serverConfig.Logger, serverConfig.Insecure = o.lease, stderr, o.insecure
	var rules *allowFile
	if o.allow != "" {
		if rules, err = openAllowFile(o.allow, o.Warn); err != nil {
			return exitUsage, err
		}
		serverConfig.Allow = rules.allow
	}
	cfg, err := o.Flags.Config()
	if err != nil {
		return exitUsage, err
	}
	cfg.Margin, cfg.Logger = o.margin, stderr
	cfg.OmitHolder = true // the clients send their own records
	var records *audit
	if o.audit != "" {
		if records, err = openAudit(o.audit, out, o.Warn); err != nil {
			return exitUsage, err
		}
		defer records.close() // once the locks are closed, or the process ends
		serverConfig.Changed = records.changed
	}
	requests := &monitor{audit: records}
	if records != nil || o.metrics != "" {
		cfg.Monitor = requests
	}
	ctx, cancel := context.WithTimeout(stopped, connectLimit)
	defer cancel()
	locks, err := o.Connect(ctx, cfg)
	switch {
	case errors.Is(err, actors.ErrInvalid):
		return exitUsage, err
	case err != nil && stopped.Err() != nil:
		return 0, nil
	case err != nil:
		return exitUnavailable, err
	}
	watching, stopWatching := context.WithCancel(context.Background())
	defer stopWatching()
	go certificates.Watch(watching)
	go o.Certificates.Watch(watching)
	go rereadBySignal(watching, hangUps, certificates, o.Certificates, rules, records)
	server, err := remote.NewServer(locks, serverConfig)
	if err != nil {
		return exitUsage, errors.Join(err, locks.Close())
	}
	streams, err := server.GRPC(secured)
	if err != nil {
		return exitUsage, errors.Join(err, server.Close(), locks.Close())
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return exitUnavailable, errors.Join(fmt.Errorf("-listen %s: %w", o.listen, err), server.Close(), locks.Close())
	}
	if o.metrics != "" {
		shown, err := net.Listen("tcp", o.metrics)
		if err != nil {
			return exitUnavailable, errors.Join(fmt.Errorf("-metrics %s: %w", o.metrics, err), listener.Close(), server.Close(), locks.Close())
		}
		m := &metrics{locks: locks, server: server, audit: records, requests: requests, certificates: map[string]*lockflags.Certificates{"clients": certificates, "zookeeper": o.Certificates}}
		go func() {
			if err := m.serve(watching, shown); err != nil {
				warn("-metrics %s is served no more: %v", o.metrics, err)
			}
		}()
		stderr.Info("metrics are served", "address", shown.Addr().String())
	}
	failed := make(chan error, 1)
	go func() { failed <- streams.Serve(listener) }()
	fmt.Fprintln(out, "serving on", listener.Addr())
	select {
	case <-stopped.Done():
		stderr.Info("drains", "why", context.Cause(stopped), "clients", server.Clients(), "limit", o.drain)
	case err = <-failed:
		err = fmt.Errorf("the address %s is served no more: %w", listener.Addr(), err)
	}
	if cut := o.drainClients(hurried, server); cut != nil {
		return exitCutShort, errors.Join(err, cut)
	}
	stop(streams)
	if err = errors.Join(err, locks.Close()); err != nil {
		return exitUnavailable, err
	}
	return 0, nil
}

// drainClients blocks until no client may believe in a lock. After an error some may.
func (o *lockdFlags) drainClients(ctx context.Context, server *remote.LockServer) error {
	ctx, cancel := context.WithTimeout(ctx, o.drain)
	defer cancel()
	err := server.Drain(ctx, o.drain/5)
	if err == nil {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("the drain was cut short: %w; lockd leaves its ZooKeeper session open for them, and the locks stay taken until it expires, within %v",
			err, o.Session)
	}
	return nil
}

// stopLimit bounds the end of the streams, on which clients have nothing any more.
const stopLimit = time.Second

// stop ends the streams, and blocks until they have ended.
func stop(streams *remote.GRPCServer) {
	timer := time.AfterFunc(stopLimit, streams.Stop)
	defer timer.Stop()
	streams.GracefulStop()
}
