package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/go-zookeeper/zk"
)

var raw = peer{
	name:      "raw",
	about:     "create and delete of an ephemeral sequential node with go-zookeeper: no lock, but what one costs at least",
	server:    "zookeeper",
	version:   moduleVersion("github.com/go-zookeeper/zk"),
	unlocked:  true,
	reference: true,
	waiters:   1000,
	open: func(ctx context.Context, addr string) (driver, error) {
		conn, err := dialZooKeeper(ctx, addr)
		return rawDriver{conn}, err
	},
}

var zklock = peer{
	name:      "zklock",
	reference: true,
	about:     "go-zookeeper's zk.Lock, one per client on one connection",
	server:    "zookeeper",
	version:   moduleVersion("github.com/go-zookeeper/zk"),
	waiters:   100,
	open: func(ctx context.Context, addr string) (driver, error) {
		conn, err := dialZooKeeper(ctx, addr)
		return zklockDriver{conn}, err
	},
}

// dialZooKeeper opens a session, and waits until it is established.
func dialZooKeeper(ctx context.Context, servers string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), sessionTimeout,
		zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return nil, errors.New("connection was closed")
			}
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("connect to %s: %w", servers, context.Cause(ctx))
		}
	}
}

type rawDriver struct{ conn *zk.Conn }

func (d rawDriver) close() { d.conn.Close() }

func (d rawDriver) lock(_ context.Context, a access) (locker, error) {
	return &rawLocker{conn: d.conn, prefix: a.path + "/lock-"}, makeDirectory(d.conn, a.path)
}

// makeDirectory creates a persistent node and its parents unless they exist.
func makeDirectory(conn *zk.Conn, path string) error {
	_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNoNode) {
		if err := makeDirectory(conn, path[:strings.LastIndexByte(path, '/')]); err != nil {
			return err
		}
		_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

type rawLocker struct {
	conn         *zk.Conn
	prefix, node string
}

func (l *rawLocker) acquire(context.Context) (err error) {
	l.node, err = l.conn.Create(l.prefix, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return err
}

func (l *rawLocker) release(context.Context) error { return l.conn.Delete(l.node, -1) }

type zklockDriver struct{ conn *zk.Conn }

func (d zklockDriver) close() { d.conn.Close() }

func (d zklockDriver) lock(_ context.Context, a access) (locker, error) {
	return zklockLocker{zk.NewLock(d.conn, a.path, zk.WorldACL(zk.PermAll))}, nil
}

type zklockLocker struct{ lock *zk.Lock }

func (l zklockLocker) acquire(context.Context) error { return l.lock.Lock() }
func (l zklockLocker) release(context.Context) error { return l.lock.Unlock() }
