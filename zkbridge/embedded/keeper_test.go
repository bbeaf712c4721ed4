package embedded_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Versions of ClickHouse Keeper, as of ServerConfig.Version: without any optional request, with all
// but containers, and with these.
const (
	oldKeeper    = "keeper-22.8"
	newKeeper    = "keeper-26.1"
	newestKeeper = "keeper-26.8"
)

func TestKeeperSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, Version: oldKeeper})
		c := memorySession(t, s, time.Second)
		want(t, "timeout", c.timeout, int32(10_000))
		want(t, "password", string(c.password), string(make([]byte, 16)))
		want(t, "no byte for read-only mode", c.short, true)
		first := c.call(embedded.OpExists, "/", false)
		want(t, "zxid after a session was opened", first.zxid, int64(0))
		want(t, "zxid of a ping", c.call(embedded.OpPing).zxid, int64(1))
		c.call(embedded.OpCreate, "/n", []byte(nil), open, 1)

		other := dialMemory(t, s, "")
		want(t, "connected", other.connect(time.Second, c.id, c.password, 99), true)
		want(t, "another session", other.id != c.id, true)
		want(t, "the former connection", c.call(embedded.OpExists, "/n", false).err, int32(0))
		c.nc.Close()
		time.Sleep(9 * time.Second)
		want(t, "node within the timeout", other.call(embedded.OpExists, "/n", true).err, int32(0))
		time.Sleep(2 * time.Second)
		want(t, "node after the timeout", other.call(embedded.OpExists, "/n", false).err, int32(-101))
		want(t, "events", len(other.events), 1)
	})
}

// A request that Keeper does not know ends the connection, and the session goes on to live.
func TestKeeperHangsUp(t *testing.T) {
	end := pack(-1, true, -1)
	create := func(op embedded.Op, flags int) packed {
		return append(pack(op, false, -1, "/multi", []byte(nil), open, flags), end...)
	}
	requests := []struct {
		name    string
		request []any
		knows   string // the versions that know it: of old, new and newest
	}{
		{"create", []any{embedded.OpCreate, "/a", []byte(nil), open, 0}, "yyy"},
		{"create2", []any{embedded.OpCreate2, "/b", []byte(nil), open, 0}, "nyy"},
		{"createContainer", []any{embedded.OpCreateContainer, "/c", []byte(nil), open, 4}, "nny"},
		{"create in a transaction", []any{embedded.OpMulti, create(embedded.OpCreate, 0)}, "yyy"},
		{"create2 in a transaction", []any{embedded.OpMulti, create(embedded.OpCreate2, 0)}, "nyy"},
		{"createContainer in a transaction", []any{embedded.OpMulti, create(embedded.OpCreateContainer, 4)}, "nny"},
		{"multiRead", []any{embedded.OpMultiRead, packed(append(pack(embedded.OpGetData, false, -1, "/", false), end...))}, "nyy"},
		{"setWatches", []any{embedded.OpSetWatches, int64(0), []string{"/a"}, []string{}, []string{}}, "nyy"},
		{"addWatch", []any{embedded.OpAddWatch, "/a", 0}, "nyy"},
		{"getEphemerals", []any{embedded.OpGetEphemerals, "/"}, "nnn"},
		{"whoAmI", []any{embedded.OpWhoAmI}, "nnn"},
	}
	for i, version := range []string{oldKeeper, newKeeper, newestKeeper} {
		for _, r := range requests {
			t.Run(version+" "+r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, Version: version})
					c := memorySession(t, s, 10*time.Second)
					if r.knows[i] == 'y' {
						want(t, "answer", c.call(r.request[0].(embedded.Op), r.request[1:]...).err, int32(0))
						return
					}
					c.request(r.request[0].(embedded.Op), r.request[1:]...)
					want(t, "hangs up", c.closed(), true)
					want(t, "sessions", len(s.Sessions()), 1)
				})
			})
		}
	}
}

func TestKeeperLogins(t *testing.T) {
	s := embedded.Run(t, embedded.ServerConfig{Version: newKeeper})
	c := openSession(t, s.Addr(), 10*time.Second)
	want(t, "digest", c.call(embedded.OpAuth, 0, "digest", []byte("u:p")).err, int32(0))
	for scheme, token := range map[string]string{"ip": "", "x509": "CN=u", "digest": "u"} {
		want(t, scheme, c.call(embedded.OpAuth, 0, scheme, []byte(token)).err, int32(-115))
	}
	want(t, "the connection goes on", c.call(embedded.OpExists, "/", false).err, int32(0))
}

func TestRaftKeeperRefusesContainers(t *testing.T) {
	s := embedded.Run(t, embedded.ServerConfig{Version: "raftkeeper-2.1"})
	c := openSession(t, s.Addr(), 10*time.Second)
	want(t, "alone", c.call(embedded.OpCreateContainer, "/c", []byte(nil), open, 4).err, int32(-8))
	multi := append(pack(embedded.OpCreateContainer, false, -1, "/c", []byte(nil), open, 4), pack(-1, true, -1)...)
	answer := c.call(embedded.OpMulti, packed(multi))
	d := unpack{t: t, b: answer.body}
	d.int()
	d.byte()
	want(t, "in a transaction", d.int(), int32(-8))
	next := dialRaw(t, s.Addr())
	want(t, "resumes the session", next.connect(10*time.Second, c.id, c.password, 0) && next.id == c.id, true)
}
