package zkbridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

func TestSessionTable(t *testing.T) {
	t.Parallel()
	const (
		connected = messages.SessionState_CONNECTED
		suspended = messages.SessionState_SUSPENDED
		lost      = messages.SessionState_LOST
		ended     = messages.SessionState_ENDED
	)
	none := sessionState{lost, 0}
	for _, c := range []struct {
		name    string
		from    sessionState
		event   sessionEvent
		epoch   uint64
		to      sessionState
		changed bool
	}{
		{"first session", none, sessionEstablished, 1, sessionState{connected, 1}, true},
		{"cannot connect", none, sessionDisconnected, 1, none, false},
		{"refused before there was one", none, sessionExpired, 1, none, false},
		{"closed before there was one", none, sessionClosed, 0, sessionState{ended, 0}, true},
		{"cut", sessionState{connected, 1}, sessionDisconnected, 1, sessionState{suspended, 1}, true},
		{"cut twice", sessionState{suspended, 1}, sessionDisconnected, 1, sessionState{suspended, 1}, false},
		{"reconnected", sessionState{suspended, 1}, sessionEstablished, 1, sessionState{connected, 1}, true},
		{"connected twice", sessionState{connected, 1}, sessionEstablished, 1, sessionState{connected, 1}, false},
		{"expired", sessionState{suspended, 1}, sessionExpired, 1, sessionState{lost, 1}, true},
		{"expired at once", sessionState{connected, 1}, sessionExpired, 1, sessionState{lost, 1}, true},
		{"overdue", sessionState{suspended, 1}, sessionOverdue, 1, sessionState{lost, 1}, true},
		{"overdue while connected", sessionState{connected, 1}, sessionOverdue, 1, sessionState{lost, 1}, true},
		{"overdue of an old epoch", sessionState{connected, 2}, sessionOverdue, 1, sessionState{connected, 2}, false},
		{"a lost session never comes back", sessionState{lost, 1}, sessionEstablished, 1, sessionState{lost, 1}, false},
		{"next session", sessionState{lost, 1}, sessionEstablished, 2, sessionState{connected, 2}, true},
		{"late event of the last epoch", sessionState{connected, 2}, sessionDisconnected, 1, sessionState{connected, 2}, false},
		{"event of another epoch", sessionState{suspended, 2}, sessionEstablished, 3, sessionState{suspended, 2}, false},
		{"closed", sessionState{connected, 2}, sessionClosed, 2, sessionState{ended, 2}, true},
		{"closed while suspended", sessionState{suspended, 2}, sessionClosed, 2, sessionState{ended, 2}, true},
		{"closed stays closed", sessionState{ended, 2}, sessionEstablished, 3, sessionState{ended, 2}, false},
		{"closed twice", sessionState{ended, 2}, sessionClosed, 2, sessionState{ended, 2}, false},
	} {
		to, changed := c.from.after(c.event, c.epoch)
		if to != c.to || changed != c.changed {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, to, changed, c.to, c.changed)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	system := host.NewSystem(nil, nil)
	defer system.Close()
	for _, c := range []struct {
		cfg  Config
		want []string // parts of the error
	}{
		{Config{}, []string{"Servers", "empty"}},
		{Config{Servers: "  "}, []string{"Servers", "empty"}},
		{Config{Servers: "a:2181,,b"}, []string{`""`, "a:2181,,b", "missing"}},
		{Config{Servers: "a:2181,"}, []string{"missing"}},
		{Config{Servers: "a:2181, b c:2181"}, []string{`" b c:2181"`, "spaces"}},
		{Config{Servers: ":2181"}, []string{`":2181"`, "host is missing"}},
		{Config{Servers: "a:"}, []string{`port ""`, "1 to 65535"}},
		{Config{Servers: "a:0"}, []string{`port "0"`, "1 to 65535"}},
		{Config{Servers: "a:65536"}, []string{`port "65536"`}},
		{Config{Servers: "a:zk"}, []string{`port "zk"`}},
		{Config{Servers: "a:-1"}, []string{`port "-1"`}},
		{Config{Servers: "::1"}, []string{`"::1"`, "brackets"}},
		{Config{Servers: "[::1"}, []string{"brackets"}},
		{Config{Servers: "[x]:1"}, []string{"IPv6"}},
		{Config{Servers: "[::1]2181"}, []string{"colon"}},
		{Config{Servers: "a:2181/x/"}, []string{"a:2181/x/", "chroot"}},
		{Config{Servers: "a:2181/x,b:2181"}, []string{"last server"}},
		{Config{Servers: "a:2181/x/../y"}, []string{"chroot", `".."`}},
		{Config{Servers: "/x"}, []string{"missing"}},
		{Config{Servers: "a", MaxReply: 1000}, []string{"MaxReply", "1000", "1048576"}},
		{Config{Servers: "a", MaxOutstanding: -1}, []string{"MaxOutstanding", "-1"}},
		{Config{Servers: "a", Auth: []Auth{{Credential: "x:y"}}}, []string{"Auth 0", "Scheme"}},
		{Config{Servers: "a", Auth: []Auth{{"digest", "x:y"}, {"digest", "noword"}}}, []string{"Auth 1", "colon"}},
		{Config{Servers: "a", Auth: []Auth{{"digest", ":" + strings.Repeat("x", zkconn.MaxRequest)}}}, []string{"Auth 0", "524288"}},
		{Config{Servers: "a", Auth: []Auth{{"sasl", "x"}}}, []string{"Auth 0", "sasl is not supported"}},
		{Config{Servers: "a", Auth: []Auth{{"world", "x"}}}, []string{"Auth 0", "world"}},
		{Config{Servers: "a", Auth: []Auth{{"auth", "x"}}}, []string{"Auth 0", "scheme auth"}},
		{Config{Servers: "a", ACL: []zk.ACL{}}, []string{"ACL", "empty"}},
		{Config{Servers: "a", ACL: []zk.ACL{{Perms: 31}}}, []string{"ACL 0", "Scheme"}},
		{Config{Servers: "a", ACL: []zk.ACL{{Perms: 32, Scheme: "world", ID: "anyone"}}}, []string{"ACL 0", "32"}},
		{Config{Servers: "a", ACL: CreatorAll()}, []string{"ACL 0", "Auth"}},
		{Config{Servers: "http://a"}, []string{"http://a"}},
		{Config{Servers: "a?:1"}, []string{"'?'"}},
		{Config{Servers: "a", SessionTimeout: -time.Second}, []string{"SessionTimeout", "-1s", "100ms"}},
		{Config{Servers: "a", SessionTimeout: time.Millisecond}, []string{"SessionTimeout", "1ms"}},
		{Config{Servers: "a", SessionTimeout: 1000 * time.Hour}, []string{"SessionTimeout", "1000h"}},
		{Config{Servers: "a", ConnectTimeout: -1}, []string{"ConnectTimeout", "-1ns", "10ms"}},
		{Config{Servers: "a", Margin: -1}, []string{"Margin", "-1ns"}},
		{Config{Servers: "a", Margin: 11 * time.Second}, []string{"Margin", "11s", "10s"}},
	} {
		b, err := Open(system, c.cfg)
		if err == nil {
			b.Close()
			t.Errorf("%+v is accepted", c.cfg)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %q does not contain %q", c.cfg, err, part)
			}
		}
	}
	if _, err := Open(nil, Config{Servers: "a"}); err == nil {
		t.Error("no system is accepted")
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ list, want string }{
		{"a", "a:2181"}, {" a:2181, b ,\tc:1 /x", "a:2181,b:2181,c:1/x"}, {"a,b:1,10.0.0.1:65535", "a:2181,b:1,10.0.0.1:65535"},
		{"[::1]", "[::1]:2181"}, {"[fe80::1%eth0]:7", "[fe80::1%eth0]:7"}, {"zk_1.x-y.Z:2", "zk_1.x-y.Z:2"},
		{"a/", "a:2181"}, {"a,b:1/x", "a:2181,b:1/x"}, {"[::1]/x/y z", "[::1]:2181/x/y z"},
	} {
		s, err := Config{Servers: c.list}.check()
		if err != nil || strings.Join(s.Servers.All(), ",")+string(s.Root) != c.want {
			t.Errorf("%s: %v, %v", c.list, s, err)
		}
	}
	for _, c := range []struct {
		servers                  string
		session, connect, margin time.Duration
	}{
		{"a", 0, 20 * time.Second / 3, 4 * time.Second},
		{"a,b,c", 0, 20 * time.Second / 9, 4 * time.Second},
		{"a,b,c", 6 * time.Second, time.Second, 1200 * time.Millisecond},
		{"a,b,c", 300 * time.Millisecond, 100 * time.Millisecond, 60 * time.Millisecond},
		{"a", 5 * time.Minute, 10 * time.Second, time.Minute},
	} {
		s, err := Config{Servers: c.servers, SessionTimeout: c.session}.check()
		if err != nil || s.ConnectTimeout != c.connect || s.Margin != c.margin {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
	}
}

func TestWatchTable(t *testing.T) {
	t.Parallel()
	ep := &epoch{number: 7, actor: &bridgeActor{cfg: &settings{}}}
	var table watchTable
	a, b := newUser(t, nil), newUser(t, nil)
	wakes := func(u *user) (n int) { // since the last call
		for n = len(u.mailbox); len(u.mailbox) > 0; <-u.mailbox {
		}
		return n
	}

	first := table.add(a, "/d/n")
	if nodes, _ := table.paths(); len(nodes) > 0 {
		t.Errorf("%v would be watched again before they are", nodes)
	}
	table.onRead(first, true)
	children := table.add(b, "/d/")
	table.onRead(children, true)
	if nodes, directories := table.paths(); !slices.Equal(nodes, []string{"/d/n"}) || !slices.Equal(directories, []string{"/d"}) {
		t.Errorf("watched again are the nodes %v and the directories %v", nodes, directories)
	}
	table.remove(b, "/d/")
	second := table.add(b, "/d/n") // its read is under way: the event stems from a's watch, or from b's own
	table.fire(ep, "/d/n", false)
	if wakes(a) != 1 || wakes(b) != 1 {
		t.Error("a or b received no Wake, or several")
	}
	third := table.add(b, "/d/n") // b asks again after its Wake
	table.onRead(second, true)
	table.onRead(second, false)
	if table.byRecipient[b]["/d/n"] != third {
		t.Error("the answer to an earlier read has ended the interest")
	}
	table.onRead(third, true)
	table.fire(ep, "/d/n", false)
	if wakes(a) != 0 || wakes(b) != 1 {
		t.Error("b received no Wake, or a received another one")
	}
	for _, deleted := range []bool{false, true} {
		early := table.add(a, "/d/n")
		table.fire(ep, "/d/n", deleted) // before the reply
		table.onRead(early, true)
		if len(table.byPath)+len(table.byRecipient) != 0 { // it would never be removed
			t.Errorf("left, deleted %v: %v", deleted, table)
		}
		table.fire(ep, "/d/n", deleted)
		if wakes(a) != 1 {
			t.Error("a did not receive one Wake")
		}
	}
	for _, path := range []string{"/d/1", "/d/2"} {
		table.add(a, path)
		table.add(b, path)
	}
	table.remove(a, "/d/1")
	table.dropAll(b)
	table.fire(ep, "/d/1", true)
	table.fire(ep, "/d/2", true)
	if wakes(a) != 1 || wakes(b) != 0 {
		t.Error("interest did not end as it should")
	}
	table.add(nil, "/d/3")
	if len(table.byPath)+len(table.byRecipient) != 0 {
		t.Errorf("left: %v", table)
	}
}
