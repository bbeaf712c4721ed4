package main

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"
)

var etcd = peer{
	name:    "etcd",
	about:   "etcd's concurrency.Mutex, and RWMutex of its experimental recipes: a client per process, a lease per lock client, as etcd tells holders apart by lease. In partitions: a session for each process, and an election for each partition",
	server:  "etcd",
	version: moduleVersion("go.etcd.io/etcd/client/v3"),
	waiters: 100,
	recipes: []string{readWrite},
	join:    joinEtcd,
	open: func(ctx context.Context, addr string) (driver, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		if _, err := client.Status(ctx, addr); err != nil {
			client.Close()
			return nil, err
		}
		return &etcdDriver{client: client, sessions: map[int]*concurrency.Session{}}, nil
	},
}

type etcdDriver struct {
	client   *clientv3.Client
	mu       sync.Mutex
	sessions map[int]*concurrency.Session // by lock client; kept for all loads
}

func (d *etcdDriver) lock(_ context.Context, a access) (locker, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	session := d.sessions[a.client]
	if session == nil {
		var err error
		if session, err = concurrency.NewSession(d.client, concurrency.WithTTL(int(sessionTimeout.Seconds()))); err != nil {
			return nil, err
		}
		d.sessions[a.client] = session
	}
	switch a.recipe {
	case readMode:
		return etcdReader{recipe.NewRWMutex(session, a.path)}, nil
	case writeMode:
		return etcdWriter{recipe.NewRWMutex(session, a.path)}, nil
	}
	return etcdLocker{concurrency.NewMutex(session, a.path)}, nil
}

func (d *etcdDriver) close() { d.client.Close() }

type etcdLocker struct{ mutex *concurrency.Mutex }

func (l etcdLocker) acquire(ctx context.Context) error { return l.mutex.Lock(ctx) }
func (l etcdLocker) release(ctx context.Context) error { return l.mutex.Unlock(ctx) }

// The experimental recipes take no context.
type (
	etcdReader struct{ lock *recipe.RWMutex }
	etcdWriter struct{ lock *recipe.RWMutex }
)

func (l etcdReader) acquire(context.Context) error { return l.lock.RLock() }
func (l etcdReader) release(context.Context) error { return l.lock.RUnlock() }
func (l etcdWriter) acquire(context.Context) error { return l.lock.Lock() }
func (l etcdWriter) release(context.Context) error { return l.lock.Unlock() }
