//go:build unix

package main

import (
	"crypto/tls"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/servetest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// With -server in place of -zk lockrun does the same.
func TestLockServer(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		addr, _ := servetest.Start(t, zk, 0, nil)
		server := func(path string, more ...string) []string {
			return append([]string{"-server", addr, "-insecure", "-lock", path}, more...)
		}
		path := zk.Path(t)
		p := launch(t, "", server(path, "--", "sh", "-c", `echo "$ACTORLOCK_TOKEN"; echo "$ACTORLOCK_NODE"; exit 7`)...)
		if _, err := actors.ParseToken(p.line(t)); err != nil {
			t.Error(err)
		}
		if got := p.line(t); !strings.HasPrefix(got, path+"/_c_") {
			t.Errorf("ACTORLOCK_NODE is %q", got)
		}
		if code := p.code(t); code != 7 {
			t.Errorf("code %d; %s", code, &p.stderr)
		}
		if nodes := zk.Nodes(t, path); len(nodes) > 0 {
			t.Errorf("it has left %q", nodes)
		}

		// The lock is the one of -zk.
		busy := launch(t, "", server(path, "--", "sh", "-c", "echo up; sleep 1000; echo woken")...)
		busy.line(t)
		for _, flags := range [][]string{server(path, "-wait", "0"), lockFlags(zk, path, "-wait", "0"), server(path, "-wait", "200ms")} {
			endsWith(t, exitNotAcquired, append(flags, "true")...)
		}
		busy.signal(t, syscall.SIGTERM)
		if code := busy.code(t); code != 143 {
			t.Errorf("the holder's code is %d; %s", code, &busy.stderr)
		}
		endsWith(t, 0, append(lockFlags(zk, path, "-wait", "0"), "true")...)

		for _, mode := range []string{"read", "write", "semaphore"} {
			endsWith(t, 0, server(zk.Path(t), "-mode", mode, "--", "true")...)
		}
	})
}

// The subcommands show and change the locks of the ensemble, also those of other clients.
func TestSubcommandsByLockServer(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		addr, _ := servetest.Start(t, zk, 0, nil)
		path := zk.Path(t) + "/orders"
		by := []string{"-server", addr, "-insecure"}
		first := launch(t, "", append(append([]string{"-on-revoke", "TERM", "-lock", path}, by...), "--", "sh", "-c", "echo up; sleep 1000")...)
		first.line(t)
		second := launch(t, "", append(lockFlags(zk, path), "--", "sh", "-c", "echo up; sleep 1000")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(zk.Nodes(t, path)) == 2 }, "another lockrun waits")

		who := append([]string{"who", path, "-json"}, by...)
		if all := objects(t, output(t, 0, who...)); len(all) != 2 || all[0]["holds"] != true || all[0]["owner"] != "sh" || all[0]["pid"] != float64(first.cmd.Process.Pid) ||
			all[1]["pid"] != float64(second.cmd.Process.Pid) {
			t.Errorf("who: %v", all)
		}
		list := objects(t, output(t, 0, append([]string{"ls", "-json", strings.TrimSuffix(path, "/orders")}, by...)...))
		if len(list) != 1 || list[0]["path"] != path || list[0]["waiters"] != 1.0 {
			t.Errorf("ls: %v", list)
		}
		watched := launch(t, "", append([]string{"watch", path, "-json"}, by...)...)
		if all := objects(t, watched.line(t)); len(all) != 2 {
			t.Errorf("watch: %v", all)
		}
		released := objects(t, output(t, 0, append([]string{"revoke", path, "-json", "-wait", "1m"}, by...)...))
		if len(released) != 1 || released[0]["outcome"] != "released" {
			t.Errorf("revoke: %v", released)
		}
		if code := first.code(t); code != 143 {
			t.Errorf("the holder's code is %d; %s", code, &first.stderr)
		}
		second.line(t)
		zktest.Eventually(t, timeLimit, func() bool { return len(objects(t, watched.line(t))) == 1 }, "watch shows the release")
		watched.signal(t, syscall.SIGTERM)
		if code := watched.code(t); code != 143 {
			t.Errorf("the code of watch is %d; %s", code, &watched.stderr)
		}

		node := objects(t, output(t, 0, who...))[0]["node"].(string)
		if text := output(t, exitLost, append([]string{"verify", actors.Token{}.String(), node}, by...)...); text != "" {
			t.Errorf("verify: %s", text)
		}
		broken := objects(t, output(t, 0, append([]string{"break", path, "-json", "-yes", "-grace", "1ms"}, by...)...))
		if len(broken) != 1 || broken[0]["node"] != node || broken[0]["outcome"] != "broken" {
			t.Errorf("break: %v", broken)
		}
		if code := second.code(t); code != exitLost {
			t.Errorf("the code of the other holder is %d; %s", code, &second.stderr)
		}
		if text := output(t, 0, who...); text != "[]" {
			t.Errorf("who: %s", text)
		}
	})
}

// lockrun goes on with the next lock server of its list.
func TestSecondLockServer(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	addr, _ := servetest.Start(t, zk, 0, nil)
	endsWith(t, 0, "-server", "127.0.0.1:1,"+addr, "-insecure", "-lock", zk.Path(t), "--", "true")
}

// The command can end in order when the lock server is gone for as long as the lease.
func TestLockServerEndsInOrder(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	zk := zktest.Embedded(t)
	addr, stop := servetest.Start(t, zk, 10*time.Second, nil)
	p := launch(t, "", "-server", addr, "-insecure", "-lock", zk.Path(t), "--", "sh", "-c", `trap "echo ended in order; exit 0" TERM; echo up; while :; do sleep 0.05; done`)
	p.line(t)
	stop()
	if line := p.line(t); line != "ended in order" {
		t.Errorf("the command says %q", line)
	}
	if code := p.code(t); code != exitLost {
		t.Errorf("code %d; %s", code, &p.stderr)
	}
}

// The command is stopped when the lock server is gone for as long as the lease.
func TestLockServerGone(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	addr, stop := servetest.Start(t, zk, 2*time.Second, nil)
	p := launch(t, "", "-server", addr, "-insecure", "-lock", zk.Path(t), "--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
	p.line(t)
	stop()
	if code := p.code(t); code != exitLost || !strings.Contains(p.stderr.String(), "the command was stopped because its lock was lost") {
		t.Errorf("code %d; %s", code, &p.stderr)
	}
	p.waitOutputEnd(t) // also for the end of the command
}

// Mutual TLS is by the flags that are ZooKeeper's otherwise.
func TestLockServerByTLS(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	a := zktest.NewAuthority(t)
	keys, trust := a.Files(a.Issue("both"))
	addr, _ := servetest.Start(t, zk, 0, &tls.Config{Certificates: []tls.Certificate{a.Issue("lockd")}, ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert})
	addr = strings.Replace(addr, "127.0.0.1", "localhost", 1) // the name in the certificate
	path := zk.Path(t)
	endsWith(t, 0, "-server", addr, "-tls-ca", trust, "-tls-cert", keys, "-tls-key", keys, "-lock", path, "--", "true")
	p := launchWith(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "ACTORLOCK_SERVER="+addr, "ACTORLOCK_TLS_CA="+trust, "ACTORLOCK_TLS_CERT="+keys, "ACTORLOCK_TLS_KEY="+keys)
	}, "-lock", path, "--", "true")
	if code := p.code(t); code != 0 {
		t.Errorf("by the environment: code %d; %s", code, &p.stderr)
	}
	cases := []struct {
		what, want string
		flags      []string
	}{
		{"no certificate", "it may want a certificate of the client: -tls-cert", []string{"-tls-ca", trust}},
		{"no TLS", "it may want TLS", []string{"-insecure"}},
		{"no authority", "; -tls-ca", []string{"-tls-cert", keys, "-tls-key", keys}},
	}
	refused := func(i int, wait string) *lockrunProcess {
		return launch(t, "", append(append([]string{"-server", addr, "-wait", wait, "-lock", path}, cases[i].flags...), "--", "true")...)
	}
	var runs []*lockrunProcess
	for i := range cases {
		runs = append(runs, refused(i, "3s"))
	}
	for i, c := range cases {
		code, text := runs[i].code(t), runs[i].stderr.String()
		if !strings.Contains(text, c.want) { // the machine is too slow
			p := refused(i, "1m")
			code, text = p.code(t), p.stderr.String()
		}
		if code != exitUnavailable || !strings.Contains(text, c.want) {
			t.Errorf("%s: code %d; %s", c.what, code, text)
		}
	}
}

// A flag overrules the environment of the other way to the locks.
func TestServerOverrulesEnvironment(t *testing.T) {
	t.Setenv("ACTORLOCK_ZK", "127.0.0.1:1")
	t.Setenv("ACTORLOCK_SESSION", "20s")
	o, err := runCommand.parse(strings.Fields("-server 127.0.0.1:2 -insecure -lock /a -- true"))
	if err != nil || o.Servers != "" || o.LockServers != "127.0.0.1:2" {
		t.Errorf("%v: %+v", err, o)
	}
	t.Setenv("ACTORLOCK_SERVER", "127.0.0.1:2")
	t.Setenv("ACTORLOCK_INSECURE", "true")
	o, err = runCommand.parse(strings.Fields("-zk 127.0.0.1:1 -lock /a -- true"))
	if err != nil || o.LockServers != "" || o.Servers != "127.0.0.1:1" {
		t.Errorf("%v: %+v", err, o)
	}
	if _, err := runCommand.parse(strings.Fields("-lock /a -- true")); err == nil || !strings.Contains(err.Error(), "choose one of them") {
		t.Error(err)
	}
}
