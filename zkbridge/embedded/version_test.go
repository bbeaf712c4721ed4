package embedded_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Versions of ZooKeeper before a change that this server has, too.
var (
	before384 = regexp.MustCompile(`^3\.([0-7]\.\d+|8\.[0-3]|9\.[01])$`)  // exists needs READ
	before385 = regexp.MustCompile(`^3\.([0-7]\.\d+|8\.[0-4]|9\.[0-2])$`) // a check alone is refused
)

// Whether exists needs the right to read the node depends on the version. On a missing node it
// needs none.
func TestExistsNeedsRead(t *testing.T) {
	t.Parallel()
	eachVersion(t, []string{"3.8.0", "3.8.3", "3.8.4", "3.9.1", "3.9.2", "3.10.0"}, func(t *testing.T, s *zktest.Server) {
		owner, other, path := s.Client(t), s.Client(t), s.Path(t)
		want(t, "auth", owner.AddAuth("digest", []byte("u:p")), nil)
		_, err := owner.Create(path, nil, 0, zk.AuthACL(zk.PermAll))
		want(t, "create", err, nil)
		expected := zk.ErrNoAuth
		if before384.MatchString(s.Version(t)) {
			expected = nil
		}
		_, _, err = other.Exists(path)
		want(t, "exists", err, expected)
		exists, _, err := other.Exists(path + "-missing")
		want(t, "exists of a missing node", err, nil)
		want(t, "missing node", exists, false)
	})
}

// A server that asks for a login answers each request before it by -124, and hangs up.
func TestEnforceAuth(t *testing.T) {
	t.Parallel()
	zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
		for _, request := range [][]any{{embedded.OpCreate, "/n", []byte(nil), open, 1}, {embedded.OpExists, "/", false}, {embedded.OpCloseSession}} {
			c := openSession(t, s.Addr(), 10*time.Second)
			want(t, "answer", c.call(request[0].(embedded.Op), request[1:]...).err, int32(-124))
			want(t, "hangs up", c.closed(), true)
		}
		c := s.Client(t)
		want(t, "auth", c.AddAuth("digest", []byte("u:p")), nil)
		exists, _, err := c.Exists("/")
		want(t, "exists", exists && err == nil, true)
	}, zktest.EnforceAuth("digest"))
}

func TestUnknownVersion(t *testing.T) {
	for _, version := range []string{"4.0.0", "3.9", "3.9.x", "3.-9.1", "newest", "keeper", "keeper-22", "keeper-22.8.1", "keeper-x.8", "etcd-3.5"} {
		if _, err := embedded.Start(embedded.ServerConfig{Version: version}); err == nil || !strings.Contains(err.Error(), version) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// eachVersion runs f on embedded servers of the versions, and on a real one.
func eachVersion(t *testing.T, versions []string, f func(*testing.T, *zktest.Server)) {
	for _, version := range versions {
		t.Run("embedded "+version, func(t *testing.T) { f(t, zktest.Embedded(t, zktest.Version(version))) })
	}
	t.Run("zookeeper", func(t *testing.T) { f(t, zktest.Real(t)) })
}

// What versions answer differently. TestSameAsZooKeeper compares the server with a real one.
func TestAnswersByVersion(t *testing.T) {
	t.Parallel()
	create2 := packed(append(pack(embedded.OpCreate2, false, -1, "/m", []byte(nil), open, 0), pack(-1, true, -1)...))
	unknown := packed(append(pack(embedded.OpCreate, false, -1, "/u", []byte(nil), open, 7), pack(-1, true, -1)...))
	for version, expected := range map[string]string{
		"3.8.1": "malformed 1, multi create, flags 0, remove -5, events 1",
		"3.8.2": "malformed 1, multi create2, flags -5, remove -5, events 1",
		"3.9.0": "malformed 0, multi create2, flags -5, remove 0, events 2",
	} {
		t.Run(version, func(t *testing.T) {
			c := openSession(t, embedded.Run(t, embedded.ServerConfig{Version: version}).Addr(), 10*time.Second)
			before := c.call(embedded.OpCreate, "/n", []byte(nil), open, 0).zxid
			c.call(embedded.OpCreate, "/truncated")
			malformed := c.call(embedded.OpPing).zxid - before
			multi := embedded.Op((&unpack{t, c.call(embedded.OpMulti, create2).body}).int())
			flags := c.call(embedded.OpMulti, unknown).err
			c.call(embedded.OpAddWatch, "/n", 0)
			c.call(embedded.OpGetData, "/n", true)
			for range 2 {
				c.call(embedded.OpSetData, "/n", []byte(nil), -1)
			}
			events := len(c.takeEvents())
			remove := c.call(embedded.OpRemoveWatches, "/n", 4).err
			want(t, "answers", fmt.Sprintf("malformed %d, multi %v, flags %d, remove %d, events %d", malformed, multi, flags, remove, events), expected)
		})
	}
}
