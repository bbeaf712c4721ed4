package zkbridge

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

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
