//go:build !compare

package main

import (
	"context"

	"github.com/actorlock/actorlock/examples/simplelocks/simplelock"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

var simplePeers = []peer{{
	name:    "actorlock-simple",
	about:   "this library's example of a lock that is one node, which all waiters watch",
	server:  "zookeeper",
	version: func() string { return "this tree" },
	open:    openSimple,
	only:    []string{simpleHerd.name},
}}

type simpleDriver struct {
	addr    string
	system  *host.System
	bridges []*zkbridge.Bridge // by connection
}

func openSimple(_ context.Context, addr string) (driver, error) {
	return &simpleDriver{addr: addr, system: host.NewSystem(nil, nil)}, nil
}

func (d *simpleDriver) lock(ctx context.Context, a access) (locker, error) {
	for len(d.bridges) <= a.connection {
		bridge, err := zkbridge.Open(d.system, zkbridge.Config{Servers: d.addr, SessionTimeout: sessionTimeout})
		if err != nil {
			return nil, err
		}
		d.bridges = append(d.bridges, bridge)
	}
	bridge := d.bridges[a.connection]
	return &simpleLocker{lock: simplelock.Start(d.system, bridge, a.path, simplelock.Mutex)}, bridge.Connected(ctx)
}

func (d *simpleDriver) close() {
	for _, bridge := range d.bridges {
		_ = bridge.Close()
	}
	d.system.Close()
}

type simpleLocker struct {
	lock messages.LockRef
	id   uint64
}

func (l *simpleLocker) acquire(ctx context.Context) error {
	l.id++
	pending := l.lock.Acquire(&messages.Acquire{RequestId: l.id})
	_, err := pending.Wait(ctx)
	if err != nil {
		pending.Cancel()
	}
	return err
}

func (l *simpleLocker) release(ctx context.Context) error {
	_, err := l.lock.Release(&messages.Release{RequestId: l.id}).Wait(ctx)
	return err
}
