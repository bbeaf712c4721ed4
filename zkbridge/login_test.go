package zkbridge

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A server that wants a login ends the bridge of a client that has none, or one of another scheme,
// at its first request.
func TestLoginWanted(t *testing.T) {
	t.Parallel()
	zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
		for _, c := range []struct {
			auth []Auth
			want string
		}{
			{nil, "set Config.Auth"},
			{[]Auth{{"ip", "any"}}, `the scheme of Config.Auth, ["ip"], is none of these`},
		} {
			var log bridgeLog
			b := open(t, log.config(t, Config{Servers: s.Addr(), Auth: c.auth}))
			err := b.Connected(within(t))
			if !errors.Is(err, messages.Reason_NO_AUTH) {
				t.Fatalf("%v", err)
			}
			for _, part := range []string{"wants a login", "enforce.auth.schemes", c.want, "SASL is not supported"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if log.errors("") > 0 {
				t.Errorf("logged: %s", log.String())
			}
			b.Close()
		}
		newUser(t, connected(t, Config{Servers: s.Addr(), Auth: digest("a")})).created(s.Path(t), "n-")
	}, zktest.EnforceAuth("digest"))
}

// A server that wants a login only later ends the session of a client without one. The client tries
// again from time to time.
func TestLoginWantedLater(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		var log bridgeLog
		lax := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		strict := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, EnforceAuth: []string{"digest"}})
		var d switchDialer
		d.to.Store(lax)
		u := newUser(t, connected(t, log.config(t, Config{Servers: "embedded:1", Dial: d.Dial, SessionTimeout: 2 * time.Second})))
		u.created("/d", "n-")
		u.subscribe()
		d.to.Store(strict)
		lax.DropConnections()
		<-time.After(time.Minute) // virtual
		if n := log.errors("wants a login"); n < 20 || n > 60 {
			t.Errorf("refused %d times in a minute", n)
		}
		d.to.Store(lax)
		zktest.Eventually(t, time.Minute, func() bool { return u.bridge.Session().State == messages.SessionState_CONNECTED }, "it is connected")
		u.created("/d", "n-")
	})
}

// switchDialer connects to the server that is in place at the time.
type switchDialer struct {
	to atomic.Pointer[embedded.Server]
}

func (d *switchDialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.to.Load().Dial(ctx, network, address)
}

// A quota that is used up is a limit.
func TestQuota(t *testing.T) {
	t.Parallel()
	s, path := zktest.Own(t, zktest.Setting("enforceQuota", "true")), "/limited"
	conn := s.Client(t)
	for _, node := range []string{path, "/zookeeper/quota" + path} {
		makeNode(t, conn, node, "")
	}
	makeNode(t, conn, "/zookeeper/quota"+path+"/zookeeper_limits", "count=-1,bytes=-1=;countHardLimit=3")
	makeNode(t, conn, "/zookeeper/quota"+path+"/zookeeper_stats", "count=1,bytes=0")
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	u.created(path, "n-")
	u.created(path, "n-")
	u.refused(u.create(path, "n-"), messages.Reason_LIMIT_EXCEEDED, "quota", "QUOTAEXCEEDED")
	_, err := u.bridge.Multi(within(t), &zk.CreateRequest{Path: path + "/m"})
	if !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
		t.Errorf("%v", err)
	}
}

// The log of a normal start says nothing of a loss.
func TestLogOfAStart(t *testing.T) {
	t.Parallel()
	var log bridgeLog
	newUser(t, connected(t, log.config(t, Config{Servers: zktest.Embedded(t).Addr()}))).created("/d", "n-")
	if text := log.String(); strings.Contains(text, "LOST") || !strings.Contains(text, "session is CONNECTED") {
		t.Errorf("logged: %s", text)
	}
}
