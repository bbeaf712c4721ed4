package zkbridge

import (
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// faultyClient is the client of a bridge. Its calls may fail without a fault of the connection:
// each function that is not nil runs before the call, or, if it returns an error, in its place.
type faultyClient struct {
	zkconn.Client
	multi            multiFunc // in place of the call
	createContainer  func() error
	list             func() error
	delete           func() error
	ephemerals       func() error
	readAndWatch     func() error
	watchSince       func() error
	beforeRead       func(path string) // Get, ReadNodes or Exists without a watch
	beforeSetWatches func()
}

// multiFunc answers a transaction. send sends it.
type (
	multiFunc func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error)
	sendFunc  = func() ([]zk.MultiResponse, error)
)

func isCheck(ops []zkconn.Op) bool { return ops[0].Kind == zkconn.OpCheck }

// userOfFaulty returns a user of a bridge with that client.
func userOfFaulty(t *testing.T, cfg Config, f *faultyClient) *user {
	b := connected(t, cfg)
	f.replace(b)
	return newUser(t, b)
}

// replace takes the place of a bridge's client.
func (f *faultyClient) replace(b *internals) {
	b.runInActor(func(a *bridgeActor) {
		f.Client = a.epoch.Client()
		a.epoch.SetClient(f)
	})
}

// once returns a function that returns err the first time, and nil then.
func once(err error) func() error {
	var returned atomic.Bool
	return func() error {
		if returned.Swap(true) {
			return nil
		}
		return err
	}
}

// loseCreateReply returns a client that loses the reply to the first transaction of a create.
func loseCreateReply() *faultyClient {
	var lost atomic.Bool
	return &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		results, err := send()
		if isCheck(ops) || lost.Swap(true) {
			return results, err
		}
		return nil, zk.ErrConnectionClosed
	}}
}

// fault returns the error of a function that may be nil.
func fault(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (f *faultyClient) SetWatches(over *zkconn.Conn, nodes, directories []string) {
	if f.beforeSetWatches != nil {
		f.beforeSetWatches()
	}
	f.Client.SetWatches(over, nodes, directories)
}

func (f *faultyClient) ReadAndWatch(over *zkconn.Conn, path string, then zkconn.Callback[zkconn.Content]) {
	if err := fault(f.readAndWatch); err != nil {
		then(zkconn.Content{}, err)
		return
	}
	f.Client.ReadAndWatch(over, path, then)
}

func (f *faultyClient) WatchSince(paths []string, since int64, then func(error)) {
	if err := fault(f.watchSince); err != nil {
		then(err)
		return
	}
	f.Client.WatchSince(paths, since, then)
}

func (f *faultyClient) Multi(ops []zkconn.Op, then zkconn.Callback[[]zk.MultiResponse]) {
	if f.multi == nil {
		f.Client.Multi(ops, then)
		return
	}
	go func() {
		then(f.multi(ops, func() ([]zk.MultiResponse, error) { return zkconn.Multi(f.Client, ops...) }))
	}()
}

func (f *faultyClient) CreateContainer(path string) error {
	if err := fault(f.createContainer); err != nil {
		return err
	}
	return f.Client.CreateContainer(path)
}

func (f *faultyClient) List(path string, watch bool, then zkconn.Callback[zkconn.Listing]) {
	if err := fault(f.list); err != nil {
		then(zkconn.Listing{}, err)
		return
	}
	f.Client.List(path, watch, then)
}

func (f *faultyClient) Delete(path string, then zkconn.Callback[[]zk.MultiResponse]) {
	if err := fault(f.delete); err != nil {
		then(nil, err)
		return
	}
	f.Client.Delete(path, then)
}

func (f *faultyClient) Ephemerals(prefix string) ([]string, error) {
	if err := fault(f.ephemerals); err != nil {
		return nil, err
	}
	return f.Client.Ephemerals(prefix)
}

func (f *faultyClient) Get(path string, watch bool, then zkconn.Callback[zkconn.Content]) {
	if f.beforeRead != nil && !watch {
		f.beforeRead(path)
	}
	f.Client.Get(path, watch, then)
}

func (f *faultyClient) Exists(path string) (zk.Stat, bool, error) {
	if f.beforeRead != nil {
		f.beforeRead(path)
	}
	return f.Client.Exists(path)
}

func (f *faultyClient) ReadNodes(reads []zkconn.NodeRead, then func(error)) {
	if f.beforeRead == nil {
		f.Client.ReadNodes(reads, then)
		return
	}
	go func() {
		f.beforeRead(reads[0].Path)
		f.Client.ReadNodes(reads, then)
	}()
}
