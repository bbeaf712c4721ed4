package main

import (
	"context"
	"os/exec"
	"slices"
)

// peer is something to measure. Its workers are Go drivers in this binary, or programs of their own.
type peer struct {
	name     string
	about    string
	server   string                                                 // which one it needs: zookeeper, etcd or redis
	open     func(ctx context.Context, addr string) (driver, error) // of a Go peer
	program  func(dir string) (func(addr string) *exec.Cmd, error)  // of any other; fails where it is not installed
	version  func() string
	unlocked bool // it is no lock: it lets everybody in
	shares   bool // its clients share a lock object, but could have one each
	waiters  int  // the longest queue that it bears in scenario scale, 0: it is not measured there

	recipes []string    // that it has beside the mutex
	lacks   func() bool // tells, if not nil, that this version's read-write lock is of no use
	only    string      // the one scenario in which it is of interest; empty: all
}

func (p peer) label() string { return p.name }

// driver is a peer in one process: one connection, shared by all clients as far as the peer allows.
type driver interface {
	// lock gives one client its own access to a lock.
	lock(ctx context.Context, a access) (locker, error)
	close()
}

// access says who uses which lock, and how.
type access struct {
	path   string
	client int
	// acknowledged has release wait until the server has confirmed it, also where the peer can do without.
	acknowledged bool
	// connection is which one to use, from 0, of a peer that can have several in one process.
	connection int
	// recipe is what the lock is; a read-write lock is used from one of its sides.
	recipe string
}

// The recipes of access. Those of load are the mutex, readWrite and semaphore.
const (
	mutex     = "mutex"
	readWrite = "rw"
	readSide  = "read"
	writeSide = "write"
	semaphore = "semaphore"
)

// permits is how many a semaphore has.
const permits = 3

// has tells whether a recipe can be measured.
func (p peer) has(recipe string) bool {
	return slices.Contains(p.recipes, recipe) && (recipe != readWrite || p.lacks == nil || !p.lacks())
}

// locker acquires and releases a lock, in turns and in one goroutine.
type locker interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
}

// peers are all that can be measured, in the order of the report.
var peers = concat(actorlockPeers(), []peer{raw, zklock, curator, kazoo, etcd, redsyncPeer})

func concat(lists ...[]peer) []peer {
	var all []peer
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// findPeer gives the peer that has the name.
func findPeer(name string) (peer, bool) {
	for _, p := range peers {
		if p.name == name {
			return p, true
		}
	}
	return peer{}, false
}
