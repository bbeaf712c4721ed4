package main

import (
	"context"
	"os/exec"
	"slices"
)

// peer is a lock implementation to measure. Its workers are Go drivers in this binary, or other programs.
type peer struct {
	name     string
	about    string
	server   string                                                 // the server that it needs: zookeeper, etcd or redis
	open     func(ctx context.Context, addr string) (driver, error) // opens the driver of a Go peer; otherwise nil
	join     joinGroup                                              // of a Go peer that has groups with partitions; otherwise nil
	program  func(dir string) (func(addr string) *exec.Cmd, error)  // prepares the program of another peer; fails if that is not installed
	version  func() string
	unlocked bool // it is no lock, and excludes no client
	shares   bool // its clients share a lock object, but could have one each
	waiters  int  // the longest queue that it supports in scenario scale; 0: not measured there

	recipes    []string    // in addition to the mutex
	rwUnusable func() bool // if not nil, reports whether the read-write lock of the installed version does not work
	only       []string    // the only scenarios in which it is measured; empty: all
	reference  bool        // it is also measured over networks and on new paths
	mode       string      // of this library, as in actorlockModes; empty: another library, or another lock of this one
}

func (p peer) label() string { return p.name }

// driver is a peer in one process: one connection that all clients share if the peer allows it.
type driver interface {
	// lock returns one client's access to a lock.
	lock(ctx context.Context, a access) (locker, error)
	close()
}

// bulkDriver is a driver that does the work of a load itself, instead of clients that use its locks.
type bulkDriver interface {
	prepare(ctx context.Context, l load) (prepared, error)
}

// access is the use of one lock by one client.
type access struct {
	path   string
	client int
	// acknowledged makes release wait until the server has confirmed it, also if the peer need not wait.
	acknowledged bool
	// connection is the number, from 0, of the connection to use, for a peer that can have several in one process.
	connection int
	// recipe is mutex, semaphore, or one of the modes of a read-write lock.
	recipe string
}

// The recipes of access. Those of load are the mutex, readWrite and semaphore.
const (
	mutex     = "mutex"
	readWrite = "rw"
	readMode  = "read"
	writeMode = "write"
	semaphore = "semaphore"
)

// permits is the number of permits of a semaphore.
const permits = 3

// has reports whether a recipe of the peer can be measured.
func (p peer) has(recipe string) bool {
	return slices.Contains(p.recipes, recipe) && (recipe != readWrite || p.rwUnusable == nil || !p.rwUnusable())
}

// locker acquires and releases a lock, in turns and in one goroutine.
type locker interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
}

// peers are all peers, in the order of the report.
var peers = concat(actorlockPeers(), []peer{raw, limit, zklock, curator, kazoo, etcd, redsyncPeer, disthashPeer})

func concat(lists ...[]peer) []peer {
	var all []peer
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// findPeer returns the peer with the name.
func findPeer(name string) (peer, bool) {
	for _, p := range peers {
		if p.name == name {
			return p, true
		}
	}
	return peer{}, false
}
