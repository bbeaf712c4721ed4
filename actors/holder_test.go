package actors_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// holderRecord is the data of a node by default.
type holderRecord struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Owner   string `json:"owner,omitempty"`
}

func recordOf(owner string) string {
	host, _ := os.Hostname()
	data, _ := json.Marshal(holderRecord{host, os.Getpid(), filepath.Base(os.Args[0]), owner})
	return string(data)
}

func dataOf(t testing.TB, conn *zk.Conn, node string) string {
	t.Helper()
	data, _, err := conn.Get(node)
	must(t, err)
	return string(data)
}

// The nodes of each recipe have the record of their process and of their owner.
func TestHolderRecordOfEachRecipe(t *testing.T) {
	each(t, func(b *testLock) {
		conn, locks := b.Client(b), b.locks()
		rw := locks.RWMutex(b.path + "-rw")
		rule := queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0)}, Markers: []string{"-one-"}}
		for name, c := range map[string]struct {
			handle
			owned bool // the node belongs to one owner
		}{
			"mutex":           {locks.Mutex(b.path + "-m"), true},
			"delay":           {locks.Mutex(b.path+"-d", actors.LockDelay(time.Second)), true},
			"local":           {locks.Mutex(b.path+"-l", actors.LocalQueue(actors.LocalQueueConfig{})), false},
			"read":            {rw.Read(), true},
			"write":           {rw.Write(), true},
			"local read":      {locks.RWMutex(b.path+"-lrw", actors.LocalQueue(actors.LocalQueueConfig{})).Read(), false},
			"semaphore":       {locks.Semaphore(b.path+"-s", 2), true},
			"semaphore mutex": {locks.SemaphoreMutex(b.path + "-sm"), true},
			"multi":           {locks.MultiLock(locks.Mutex(b.path+"-a"), locks.Semaphore(b.path+"-b", 2)), true},
			"custom":          {locks.Custom(b.path+"-c", "one", rule, "one").Kind("one"), true},
		} {
			for _, owner := range []string{"", "me"} {
				var options []actors.Option
				want := recordOf("")
				if owner != "" {
					options = append(options, actors.WithOwner(actors.Owner(owner)))
					if c.owned {
						want = recordOf(owner)
					}
				}
				g := lock(b, c, options...)
				for _, node := range g.Nodes() {
					if data := dataOf(b, conn, node); data != want {
						b.Errorf("%s of owner %q: %s has %s, want %s", name, owner, node, data, want)
					}
				}
				unlock(b, g)
				g = lock(b, c, append(options, actors.WithData([]byte("mine")))...)
				if data := dataOf(b, conn, g.Node()); c.owned && data != "mine" {
					b.Errorf("%s with data: %s", name, data)
				}
				unlock(b, g)
			}
		}
	})
}

func TestOmitHolder(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		locks := b.locks(func(cfg *actors.Config) { cfg.OmitHolder = true })
		for _, l := range []handle{locks.Mutex(b.path + "-m"), locks.Semaphore(b.path+"-s", 1),
			locks.Mutex(b.path+"-l", actors.LocalQueue(actors.LocalQueueConfig{}))} {
			g := lock(b, l, actors.WithOwner("me"))
			if data := dataOf(b, conn, g.Node()); data != "" {
				b.Errorf("%s has %q", g.Node(), data)
			}
			unlock(b, g)
		}
		g := lock(b, locks.Mutex(b.path+"-m"), actors.WithOwner("me"), actors.WithData([]byte("mine")))
		if data := dataOf(b, conn, g.Node()); data != "mine" {
			b.Errorf("%q with data", data)
		}
		unlock(b, g)
	})
}

// A revocation overwrites the record, and the holder restores it.
func TestHolderRecordAfterRevocation(t *testing.T) {
	each(t, func(b *testLock) {
		conn, locks := b.Client(b), b.locks()
		for _, r := range named("mutex", "semaphore", "local queue") {
			g := lock(b, b.handle(locks, r), actors.WithOwner("me"), actors.Revocable())
			want := recordOf("me")
			if r.name == "local queue" {
				want = recordOf("")
			}
			_, err := locks.Revoke(within(b), g.Node(), 0)
			must(b, err)
			closes(b, g.Revoked(), "the wait for the request")
			zktest.Eventually(b, timeLimit, func() bool { return dataOf(b, conn, g.Node()) == want }, "%s has its record again", g.Node())
			unlock(b, g)
		}
	})
}

// MaxNodeData limits the data of requests only.
func TestMaxNodeDataDoesNotBoundTheRecord(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex(func(cfg *actors.Config) { cfg.MaxNodeData = 4 })
		unlock(b, lock(b, mu, actors.WithOwner("me")))
		_, err := mu.Lock(within(b), actors.WithData([]byte("12345")))
		is(b, err, actors.ErrLimit)
	})
}
