// Package bare is what locks on new paths are measured against: it makes the same directories and
// nodes, by transactions of the bridge's sizes and by nothing else.
package bare

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Baseline is a session whose requests belong to no lock.
type Baseline struct {
	t      testing.TB
	client zkconn.Client
}

// Connect returns a Baseline, whose session ends with the test. It blocks until there is a session.
func Connect(t testing.TB, s *zktest.Server) *Baseline {
	t.Helper()
	cfg := &zkconn.Settings{Servers: zkconn.NewServerList([]string{s.Addr()}), SessionTimeout: 20 * time.Second, ConnectTimeout: 10 * time.Second,
		ACL: zk.WorldACL(zk.PermAll), Margin: time.Second, Dial: s.Dial, Log: slog.New(slog.DiscardHandler), Resolver: zkconn.NewResolver(), Clock: zkconn.NewClock(nil)}
	established := make(chan *zkconn.Conn, 1)
	session := zkconn.Open(1, cfg, func(event any) {
		if e, is := event.(zkconn.Established); is {
			established <- e.Conn
		}
	}, func(error) {})
	t.Cleanup(session.Close)
	select {
	case conn := <-established:
		session.Use(conn)
	case <-time.After(zktest.TimeLimit):
		t.Fatalf("bare: no session with %s", s.Addr())
	}
	return &Baseline{t, zkconn.NewClient(session)}
}

// MakeDirectory makes a directory and those above it.
func (b *Baseline) MakeDirectory(path string) {
	if err := zkconn.MakeDirectory(b.client, path); err != nil {
		b.t.Fatal(err)
	}
}

// Create makes a node in a directory, and returns how long that took.
func (b *Baseline) Create(directory string) time.Duration {
	began := time.Now()
	if _, err := zkconn.Multi(b.client, node(directory+"/n-")); err != nil {
		b.t.Error(err)
	}
	return time.Since(began)
}

// name is as long as the names of contenders.
const name = "_c_4f2504e0-4f89-11d3-9a0c-0305e82c3301-"

// first ends the name of the first node in a directory.
const first = "0000000000"

// Sizes of the transactions: as many directories, nodes or deletions as the writer of the bridge
// puts into one.
const (
	directoriesAtOnce = 63
	twoDirectories    = 42 // in pairs
	deletionsAtOnce   = 127
)

// Mutexes writes what n mutexes write in new directories of dir: it makes a directory and a node for
// each.
func (b *Baseline) Mutexes(dir string, n int) {
	b.send(n, directoriesAtOnce, func(i int) (containers, others []zkconn.Op) {
		path := at(dir, i)
		return []zkconn.Op{container(path)}, []zkconn.Op{node(path + "/" + name + "lock-")}
	})
}

// DeleteMutexes deletes the nodes that Mutexes has made.
func (b *Baseline) DeleteMutexes(dir string, n int) { b.deleteNodes(dir, n, "/"+name+"lock-"+first) }

// Semaphores writes what n semaphores of one permit write in new directories of dir. For each it
// makes a node in the request queue and one of the leases, and deletes the first.
func (b *Baseline) Semaphores(dir string, n int) {
	b.send(n, twoDirectories, func(i int) (containers, others []zkconn.Op) {
		path := at(dir, i)
		return []zkconn.Op{container(path), container(path + "/locks")}, []zkconn.Op{node(path + "/locks/" + name + "lock-")}
	})
	b.send(n, directoriesAtOnce, func(i int) (containers, others []zkconn.Op) {
		path := at(dir, i)
		return []zkconn.Op{container(path + "/leases")}, []zkconn.Op{node(path + "/leases/" + name + "lease-")}
	})
	b.deleteNodes(dir, n, "/locks/"+name+"lock-"+first)
}

// DeleteSemaphores deletes the nodes that Semaphores has left.
func (b *Baseline) DeleteSemaphores(dir string, n int) {
	b.deleteNodes(dir, n, "/leases/"+name+"lease-"+first)
}

func (b *Baseline) deleteNodes(dir string, n int, below string) {
	b.send(n, deletionsAtOnce, func(i int) (containers, others []zkconn.Op) {
		return nil, []zkconn.Op{{Kind: zkconn.OpDelete, Version: zkconn.AnyVersion, Path: at(dir, i) + below}}
	})
}

func at(dir string, i int) string { return fmt.Sprintf("%s/%d", dir, i) }

func container(path string) zkconn.Op {
	return zkconn.Op{Kind: zkconn.OpContainer, Path: path, Data: zkconn.NoData, ACL: zk.WorldACL(zk.PermAll)}
}

func node(path string) zkconn.Op {
	return zkconn.Op{Kind: zkconn.OpCreate, Path: path, Data: zkconn.NoData, ACL: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential}
}

// send sends the operations of n in transactions for size of them, three at a time as the writer
// does, and blocks until the last answer.
func (b *Baseline) send(n, size int, ops func(i int) (containers, others []zkconn.Op)) {
	inFlight := make(chan struct{}, 3)
	var left sync.WaitGroup
	for from := 0; from < n; from += size {
		var containers, others []zkconn.Op
		for i := from; i < min(from+size, n); i++ {
			c, o := ops(i)
			containers, others = append(containers, c...), append(others, o...)
		}
		inFlight <- struct{}{}
		left.Add(1)
		b.client.Multi(append(containers, others...), func(_ []zk.MultiResponse, err error) {
			if err != nil {
				b.t.Error(err)
			}
			<-inFlight
			left.Done()
		})
	}
	left.Wait()
}

// Codes returns all error codes that a server may answer with.
func Codes() []int32 { return zkconn.Codes() }
