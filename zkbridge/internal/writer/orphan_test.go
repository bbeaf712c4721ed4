package writer

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Many orphans are deleted some at once: a node may hold a lock until it is deleted.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ep := &slowEpoch{left: map[string]bool{}}
		w := New(ep, Dependencies{Settings: &zkconn.Settings{Log: slog.New(slog.DiscardHandler)}, Session: new(zkconn.SessionConn)})
		const n = 10*sweptAtOnce + 1
		ep.actor(func() {
			for i := range n {
				path := fmt.Sprint("/locks/a/", i)
				ep.left[path] = true
				w.addOrphan(path, nil, zk.ErrNoServer)
			}
		})
		<-time.After(time.Hour)
		synctest.Wait()
		if len(ep.left) > 0 || len(w.orphans.all) > 0 {
			t.Errorf("%d nodes and %d orphans are left of %d", len(ep.left), len(w.orphans.all), n)
		}
		if ep.most != sweptAtOnce {
			t.Errorf("%d deletes are under way at once, want %d", ep.most, sweptAtOnce)
		}
	})
}

// slowEpoch is an Epoch whose client takes a second to delete a node.
type slowEpoch struct {
	Epoch
	mu             sync.Mutex
	left           map[string]bool
	underWay, most int
}

// actor calls f as the bridge's actor.
func (ep *slowEpoch) actor(f func()) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	f()
}

func (ep *slowEpoch) Run(work func(zkconn.Client) func()) {
	go func() { ep.actor(work(slowClient{epoch: ep})) }()
}

func (ep *slowEpoch) AfterFunc(d time.Duration, f func()) (stop func()) {
	timer := time.AfterFunc(d, func() { ep.actor(f) })
	return func() { timer.Stop() }
}

type slowClient struct {
	zkconn.Client
	epoch *slowEpoch
}

func (c slowClient) Delete(path string, then zkconn.Callback[[]zk.MultiResponse]) {
	c.epoch.actor(func() {
		c.epoch.underWay++
		c.epoch.most = max(c.epoch.most, c.epoch.underWay)
	})
	time.AfterFunc(time.Second, func() {
		c.epoch.actor(func() {
			c.epoch.underWay--
			delete(c.epoch.left, path)
		})
		then(nil, nil)
	})
}
