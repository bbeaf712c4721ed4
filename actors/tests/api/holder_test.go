package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
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
	locktest.Must(t, err)
	return string(data)
}

// The nodes of each recipe have the record of their process and of their owner.
func TestHolderRecordOfEachRecipe(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, locks := b.Client(b), b.Locks()
		rw := locks.RWMutex(b.LockPath + "-rw")
		rule := queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0)}, Markers: []string{"-one-"}}
		for name, c := range map[string]struct {
			locktest.Handle
			owned bool // the node belongs to one owner
		}{
			"mutex":           {locks.Mutex(b.LockPath + "-m"), true},
			"delay":           {locks.Mutex(b.LockPath+"-d", actors.LockDelay(time.Second)), true},
			"local":           {locks.Mutex(b.LockPath+"-l", actors.LocalQueue(actors.LocalQueueConfig{})), false},
			"read":            {rw.Read(), true},
			"write":           {rw.Write(), true},
			"local read":      {locks.RWMutex(b.LockPath+"-lrw", actors.LocalQueue(actors.LocalQueueConfig{})).Read(), false},
			"semaphore":       {locks.Semaphore(b.LockPath+"-s", 2), true},
			"semaphore mutex": {locks.SemaphoreMutex(b.LockPath + "-sm"), true},
			"multi":           {locks.MultiLock(locks.Mutex(b.LockPath+"-a"), locks.Semaphore(b.LockPath+"-b", 2)), true},
			"custom":          {locks.Custom(b.LockPath+"-c", "one", rule, "one").Kind("one"), true},
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
				g := locktest.Lock(b, c, options...)
				for _, node := range g.Nodes() {
					if data := dataOf(b, conn, node); data != want {
						b.Errorf("%s of owner %q: %s has %s, want %s", name, owner, node, data, want)
					}
				}
				locktest.Unlock(b, g)
				g = locktest.Lock(b, c, append(options, actors.WithData([]byte("mine")))...)
				if data := dataOf(b, conn, g.Node()); c.owned && data != "mine" {
					b.Errorf("%s with data: %s", name, data)
				}
				locktest.Unlock(b, g)
			}
		}
	})
}

func TestOmitHolder(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		locks := b.Locks(func(cfg *actors.Config) { cfg.OmitHolder = true })
		for _, l := range []locktest.Handle{locks.Mutex(b.LockPath + "-m"), locks.Semaphore(b.LockPath+"-s", 1),
			locks.Mutex(b.LockPath+"-l", actors.LocalQueue(actors.LocalQueueConfig{}))} {
			g := locktest.Lock(b, l, actors.WithOwner("me"))
			if data := dataOf(b, conn, g.Node()); data != "" {
				b.Errorf("%s has %q", g.Node(), data)
			}
			locktest.Unlock(b, g)
		}
		g := locktest.Lock(b, locks.Mutex(b.LockPath+"-m"), actors.WithOwner("me"), actors.WithData([]byte("mine")))
		if data := dataOf(b, conn, g.Node()); data != "mine" {
			b.Errorf("%q with data", data)
		}
		locktest.Unlock(b, g)
	})
}

// A revocation overwrites the record, and the holder restores it.
func TestHolderRecordAfterRevocation(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, locks := b.Client(b), b.Locks()
		for _, r := range locktest.Named("mutex", "semaphore", "local queue") {
			g := locktest.Lock(b, b.HandleOf(locks, r), actors.WithOwner("me"), actors.Revocable())
			want := recordOf("me")
			if r.Name == "local queue" {
				want = recordOf("")
			}
			_, err := locks.Revoke(locktest.Within(b), g.Node(), 0)
			locktest.Must(b, err)
			locktest.Closes(b, g.Revoked(), "the wait for the request")
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return dataOf(b, conn, g.Node()) == want }, "%s has its record again", g.Node())
			locktest.Unlock(b, g)
		}
	})
}

// MaxNodeData limits the data of requests only.
func TestMaxNodeDataDoesNotBoundTheRecord(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex(func(cfg *actors.Config) { cfg.MaxNodeData = 4 })
		locktest.Unlock(b, locktest.Lock(b, mu, actors.WithOwner("me")))
		_, err := mu.Lock(locktest.Within(b), actors.WithData([]byte("12345")))
		locktest.Is(b, err, actors.ErrLimit)
	})
}
