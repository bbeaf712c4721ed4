package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// sessionTimeout is the session timeout of every peer.
const sessionTimeout = 20 * time.Second

// maxReply suffices for a list of 100,000 waiters, of 42 bytes each.
const maxReply = 8 << 20

// actorlockModes are the ways to use the library's locks; each is a peer.
var actorlockModes = map[string][]actors.LockOption{
	"actorlock":       nil,
	"actorlock-local": {actors.LocalQueue(actors.LocalQueueConfig{})},
}

func actorlockPeers() []peer {
	var all []peer
	for _, name := range slices.Sorted(maps.Keys(actorlockModes)) {
		mode := actorlockModes[name]
		all = append(all, peer{
			name:    name,
			mode:    name,
			about:   "this library",
			server:  "zookeeper",
			version: func() string { return "this tree" },
			waiters: 10_000,
			open:    openActorlock(func(locks *actors.Locks, path string) handle { return locks.Mutex(path, mode...) }, mode...),
		})
	}
	all[0].reference = true
	all[0].join = joinActorlock
	all[0].recipes, all[1].recipes = []string{readWrite, semaphore}, []string{readWrite}
	return slices.Concat(all, simplePeers, remotePeers)
}

// handle is any lock of the library.
type handle interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}

type actorlockDriver struct {
	addr    string
	locks   []*actors.Locks // by connection
	mutex   func(*actors.Locks, string) handle
	options []actors.LockOption // for read-write locks
}

func openActorlock(mutex func(*actors.Locks, string) handle, options ...actors.LockOption) func(context.Context, string) (driver, error) {
	return func(ctx context.Context, addr string) (driver, error) {
		d := &actorlockDriver{addr: addr, mutex: mutex, options: options}
		_, err := d.connection(ctx, 0)
		return d, err
	}
}

func (d *actorlockDriver) connection(ctx context.Context, n int) (*actors.Locks, error) {
	for len(d.locks) <= n {
		locks, err := actors.Connect(ctx, d.addr, actors.Config{SessionTimeout: sessionTimeout, MaxReply: maxReply})
		if err != nil {
			return nil, err
		}
		d.locks = append(d.locks, locks)
	}
	return d.locks[n], nil
}

func (d *actorlockDriver) lock(ctx context.Context, a access) (locker, error) {
	locks, err := d.connection(ctx, a.connection)
	if err != nil {
		return nil, err
	}
	l := &actorlockLocker{acknowledged: a.acknowledged}
	switch a.recipe {
	case readMode:
		l.mutex = locks.RWMutex(a.path, d.options...).Read()
	case writeMode:
		l.mutex = locks.RWMutex(a.path, d.options...).Write()
	case semaphore:
		l.mutex = locks.Semaphore(a.path, permits)
	default:
		l.mutex = d.mutex(locks, a.path)
	}
	return l, nil
}

func (d *actorlockDriver) close() {
	for _, locks := range d.locks {
		_ = locks.Close()
	}
}

type actorlockLocker struct {
	mutex        handle
	grant        *actors.Grant
	acknowledged bool
}

func (l *actorlockLocker) acquire(ctx context.Context) (err error) {
	l.grant, err = l.mutex.Lock(ctx)
	return err
}

func (l *actorlockLocker) release(ctx context.Context) error {
	if l.acknowledged {
		return l.grant.Unlock(ctx)
	}
	l.grant.Release()
	return nil
}
