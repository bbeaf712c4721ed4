package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncDelay is the time after which redsync asks again for a lock that is held. Its default of 50 to 250 ms would make
// every hand-off that slow.
const redsyncDelay = time.Millisecond

var redsyncPeer = peer{
	name:    "redsync",
	about:   "redsync on one Redis: not fair, waits by asking again, here every millisecond (its default is 50 to 250 ms)",
	server:  "redis",
	version: moduleVersion("github.com/go-redsync/redsync/v4"),
	waiters: 100,
	open: func(ctx context.Context, addr string) (driver, error) {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
		return redsyncDriver{client, redsync.New(goredis.NewPool(client))}, client.Ping(ctx).Err()
	},
}

type redsyncDriver struct {
	client *redis.Client
	sync   *redsync.Redsync
}

func (d redsyncDriver) lock(_ context.Context, a access) (locker, error) {
	return redsyncLocker{d.sync.NewMutex(a.path, redsync.WithExpiry(sessionTimeout),
		redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(redsyncDelay))}, nil
}

func (d redsyncDriver) close() { d.client.Close() }

type redsyncLocker struct{ mutex *redsync.Mutex }

func (l redsyncLocker) acquire(ctx context.Context) error { return l.mutex.LockContext(ctx) }

func (l redsyncLocker) release(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	if err == nil && !ok {
		err = errors.New("the lock was not held any more")
	}
	return err
}
