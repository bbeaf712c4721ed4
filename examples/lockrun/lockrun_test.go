//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestUsage(t *testing.T) {
	const zk = "127.0.0.1:1" // no server listens there: usage is checked first
	for _, c := range []struct {
		args string
		want string // part of the message
	}{
		{"", "-zk is missing"},
		{"-lock /a -- true", "-zk is missing"},
		{"-zk " + zk + " -- true", "-lock is missing"},
		{"-zk " + zk + " who /lock", "who is a subcommand, which comes first"},
		{"who -zk zk://" + zk + " /lock", "no scheme is accepted"},
		{"-zk " + zk + " -lock a/b -- true", `path "a/b" must begin with /`},
		{"-zk " + zk + " -lock /a/ -- true", `"/a/"`},
		{"-zk " + zk + " -lock /a//b -- true", `"/a//b"`},
		{"-zk " + zk + " -lock /a/../b -- true", `"/a/../b"`},
		{"-zk " + zk + " -lock / -- true", "below the root"},
		{"-zk " + zk + " -lock /a -permits 0 -- true", "-permits 0"},
		{"-zk " + zk + " -lock /a -permits 2 -- true", "-permits 2: only a semaphore"},
		{"-zk " + zk + " -lock /a -mode write -permits 2 -- true", "-permits 2: only a semaphore"},
		{"-zk " + zk + " -lock /a -permits many -- true", "-permits: it must be a whole number"},
		{"-zk " + zk + " -lock /a -wait 5 -- true", "-wait: it must be a number with a unit, as in 5s"},
		{"-zk " + zk + " -lock /a -session 1.5 -- true", "-session: it must be a number with a unit, as in 1.5s"},
		{"break -zk " + zk + " -yes -grace ten /a", "-grace: it must be a number with a unit, as in 5s, 1m30s or 200ms"},
		{"revoke -zk " + zk + " -wait 5 /a", "as in 5s"},
		{"ls -zk " + zk + " -max-reply 16MB /", "-max-reply: it must be a number of bytes, as in 16777216 or 16MiB"},
		{"ls -zk " + zk + " -max-reply 1000 /", "-max-reply 1000: it must be"},
		{"-zk " + zk + " -lock /a -partitions 0 -- true", "-partitions 0: it must be from 1 to 4096"},
		{"-zk " + zk + " -lock /a -partitions 4097 -- true", "-partitions 4097"},
		{"-zk " + zk + " -lock /a -partitions 4 -mode read -- true", "-partitions 4: -mode, -wait and -on-revoke are of a single lock"},
		{"-zk " + zk + " -lock /a -partitions 4 -wait 0 -- true", "-partitions 4: -mode, -wait"},
		{"-zk " + zk + " -lock /a -partitions 4 -grace -1s -- true", "-grace -1s"},
		{"-zk " + zk + " -lock /a -mode reader -- true", `-mode "reader" is not available: accepted is mutex, read, semaphore, write`},
		{"-zk " + zk + " -lock /a -mode semaphore -permits 0 -- true", "-permits 0"},
		{"-zk " + zk + " -lock /a -mode semaphore -permits -1 -- true", "-permits -1"},
		{"-zk " + zk + " -lock /a -mode semaphore -permits 3000000000 -- true", "-permits 3000000000"},
		{"-zk " + zk + " -lock /a -wait -1s -- true", "-wait -1s"},
		{"-zk " + zk + " -lock /a -wait soon -- true", "-wait"},
		{"-zk " + zk + " -lock /a -session 0 -- true", "-session 0s"},
		{"-zk " + zk + " -lock /a -session 1ms -- true", "-session 1ms: it must be from"},
		{"-zk " + zk + " -lock /a -session 900h -- true", "-session 900h"},
		{"-zk host:port -lock /a -- true", `"host:port"`},
		{"-zk a,,b -lock /a -- true", "missing between commas"},
		{"-zk " + zk + "/app/ -lock /a -- true", "/app/"},
		{"-zk " + zk + " -lock /a", "the command is missing"},
		{"-zk " + zk + " -lock /a --", "the command is missing"},
		{"-zk " + zk + " -lock /a -unknown -- true", "-unknown"},
		{"-zk " + zk + " -lock /a -on-revoke FOO -- true", `-on-revoke "FOO" is no signal`},
		{"-zk " + zk + " -lock /a -acl all -- true", `-acl "all" is not available: accepted is creator, world`},
		{"-zk " + zk + " -lock /a -acl creator -- true", "-acl creator: it needs credentials"},
		{"-zk " + zk + " -lock /a -tls-cert a -- true", "-tls-key is missing"},
		{"-zk " + zk + " -lock /a -tls-key a -- true", "-tls-cert is missing"},
		{"status -zk " + zk, `subcommand "status": it must be one of ls, who, watch, revoke, break, verify, clients, generation, completion`},
		{"who /a", "-zk is missing"},
		{"who -zk " + zk, "the lock is missing"},
		{"who -zk " + zk + " /a /b", `argument "/b"`},
		{"who -zk " + zk + " a", `path "a" must begin with /`},
		{"who /a -zk " + zk + " -raise", "-raise"},
		{"watch -zk " + zk + " /", "below the root"},
		{"ls -zk " + zk, "the path is missing"},
		{"ls -zk " + zk + " a", `path "a" must begin with /`},
		{"revoke -zk " + zk + " -wait -1s /a", "-wait -1s"},
		{"break -zk " + zk + " /a", "-yes is missing"},
		{"break -zk " + zk + " -yes -grace -1s /a", "-grace -1s"},
		{"verify -zk " + zk, "the token is missing"},
		{"verify -zk " + zk + " " + actors.Token{}.String(), "the lock is missing"},
		{"verify -zk " + zk + " 12 /a", `token "12"`},
		{"verify -zk " + zk + " 12 /a /b", `argument "/b"`},
		{"completion", "it must be one of bash, fish, zsh"},
		{"completion tcsh", "it must be one of bash, fish, zsh"},
		{"generation", "-zk is missing"},
		{"generation -raise", "-zk is missing"},
		{"generation -zk host:port", `"host:port"`},
		{"generation -zk " + zk + " -raise /a", "generation /a"},
		{"generation -zk " + zk + " -lock /a", "-lock"},
		{"generation -server " + zk + " -insecure", "a lock server does not show or raise the generation: use -zk"},
		{"-lock /a -- true", "-server names lock servers in its place"},
		{"-server " + zk + " -lock /a -- true", "-server needs -tls-ca, -tls-cert and -tls-key for mutual TLS, or -insecure"},
		{"-server " + zk + " -insecure -tls-ca a -lock /a -- true", "choose one of them"},
		{"-server " + zk + " -insecure -zk " + zk + " -lock /a -- true", "choose one of them"},
		{"-server " + zk + " -insecure -session 20s -lock /a -- true", "-session is for -zk: the lock server"},
		{"-server " + zk + " -insecure -max-reply 4MiB -lock /a -- true", "-max-reply is for -zk"},
		{"-server " + zk + " -insecure -auth-file a -lock /a -- true", "-auth-file is for -zk"},
		{"-server " + zk + " -insecure -acl world -lock /a -- true", "-acl is for -zk"},
		{"-server " + zk + " -tls-cert a -lock /a -- true", "-tls-key is missing"},
		{"-server a,,b -insecure -lock /a -- true", `lock server "" in "a,,b"`},
		{"-zk " + zk + " -insecure -lock /a -- true", "-insecure is for -server"},
	} {
		code, err := lockrun(strings.Fields(c.args))
		if code != exitUsage || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("lockrun %s: code %d, %v; want %d and %q", c.args, code, err, exitUsage, c.want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notExecutable, []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		taken := s.Path(t)
		busy := holder(t, s, taken)
		for _, c := range []struct {
			path, flags string
			command     []string
			code        int
		}{
			{"", "", []string{"true"}, 0},
			{"", "", []string{"sh", "-c", "exit 7"}, 7},
			{"", "", []string{"sh", "-c", "kill -KILL $$"}, 137},
			{"", "-wait 0", []string{"sh", "-c", "kill -TERM $$"}, 143},
			{"", "-mode mutex -permits 1 -wait 1m", []string{"sh", "-c", "exit 75"}, 75},
			{"", "", []string{"no-such-command"}, exitNotFound},
			{"", "", []string{"/no/such/command"}, exitNotFound},
			{"", "", []string{notExecutable}, exitNotExecutable},
			{"", "", []string{"/"}, exitNotExecutable},
			{"", "-session 10h", []string{"true"}, exitUnavailable}, // not granted
			{taken, "-wait 0", []string{"true"}, exitNotAcquired},
			{taken, "-wait 200ms", []string{"true"}, exitNotAcquired},
		} {
			path := c.path
			if path == "" {
				path = s.Path(t)
			}
			args := slices.Concat(lockFlags(s, path, strings.Fields(c.flags)...), []string{"--"}, c.command)
			endsWith(t, c.code, args...)
			if nodes := s.Nodes(t, path); path != taken && len(nodes) > 0 {
				t.Errorf("%q has left %q", args, nodes)
			}
		}
		zktest.Eventually(t, timeLimit, func() bool { // in the time that -wait leaves
			p := launch(t, "", append(lockFlags(s, taken, "-wait", "200ms"), "true")...)
			p.code(t)
			return strings.Contains(p.stderr.String(), fmt.Sprintf("it is held by sh, lockrun.test[%d] on ", busy.cmd.Process.Pid))
		}, "the error names the holder")
		busy.signal(t, syscall.SIGTERM)
		if code := busy.code(t); code != 143 {
			t.Errorf("the holder's code is %d; %s", code, &busy.stderr)
		}
		busy.waitOutputEnd(t)                                                // its child received the signal, too
		endsWith(t, 0, append(lockFlags(s, taken, "-wait", "0"), "true")...) // it is free
	})
}

// Two of three commands run at the same time. The third has to wait until one has ended.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	node := regexp.MustCompile(`^/leases/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lease-\d{10}$`)
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		ofTwo := []string{"-mode", "semaphore", "-permits", "2"}
		semaphore := func(flags ...string) []string { return lockFlags(s, path, slices.Concat(ofTwo, flags)...) }
		one, two := holder(t, s, path, ofTwo...), holder(t, s, path, ofTwo...)
		for _, wait := range []string{"0", "200ms"} {
			endsWith(t, exitNotAcquired, append(semaphore("-wait", wait), "true")...)
		}
		three := launch(t, "", append(semaphore("-wait", "1m"), "--", "sh", "-c", `echo "$ACTORLOCK_PATH"; echo "$ACTORLOCK_NODE"`)...)
		one.signal(t, syscall.SIGTERM)
		if got := three.line(t); got != path {
			t.Errorf("ACTORLOCK_PATH is %q, want %q", got, path)
		}
		if got := three.line(t); !strings.HasPrefix(got, path) || !node.MatchString(got[len(path):]) {
			t.Errorf("ACTORLOCK_NODE is %q", got)
		}
		two.signal(t, syscall.SIGTERM)
		for p, want := range map[*lockrunProcess]int{one: 143, two: 143, three: 0} {
			if code := p.code(t); code != want {
				t.Errorf("code %d, want %d; %s", code, want, &p.stderr)
			}
		}
	})
}

// Two readers run at the same time. A writer has to wait until both have ended, and a reader
// until the writer has ended.
func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		refused := func(mode string) {
			t.Helper()
			for _, wait := range []string{"0", "200ms"} {
				endsWith(t, exitNotAcquired, append(lockFlags(s, path, "-mode", mode, "-wait", wait), "true")...)
			}
		}
		ended := func(p *lockrunProcess) {
			t.Helper()
			p.signal(t, syscall.SIGTERM)
			if code := p.code(t); code != 143 {
				t.Errorf("code %d, want 143; %s", code, &p.stderr)
			}
		}
		one, two := holder(t, s, path, "-mode", "read"), holder(t, s, path, "-mode", "read")
		refused("write")
		ended(one)
		refused("write")
		waits := launch(t, "", append(lockFlags(s, path, "-mode", "write", "-wait", "1m"), "--", "sh", "-c", `echo "$ACTORLOCK_NODE"; exit 7`)...)
		ended(two)
		if got := waits.line(t); !strings.Contains(got, "-__WRIT__") {
			t.Errorf("ACTORLOCK_NODE is %q", got)
		}
		if code := waits.code(t); code != 7 {
			t.Errorf("the writer's code is %d, want 7; %s", code, &waits.stderr)
		}
		writer := holder(t, s, path, "-mode", "write")
		refused("read")
		refused("write")
		ended(writer)
	})
}

func TestCommandSeesLockAndStdin(t *testing.T) {
	node := regexp.MustCompile(`^/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`)
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t) + "/deep"
		p := launch(t, "input\n", append(lockFlags(s, path), "--", "sh", "-c",
			`echo "$ACTORLOCK_TOKEN"; echo "$ACTORLOCK_PATH"; echo "$ACTORLOCK_NODE"; cat; cat`)...)
		token, err := actors.ParseToken(p.line(t))
		if err != nil {
			t.Error(err)
		}
		if got := p.line(t); got != path {
			t.Errorf("ACTORLOCK_PATH is %q, want %q", got, path)
		}
		if got := p.line(t); !strings.HasPrefix(got, path) || !node.MatchString(got[len(path):]) {
			t.Errorf("ACTORLOCK_NODE is %q", got)
		}
		if got := p.line(t); got != "input" {
			t.Errorf("standard input was %q", got)
		}
		if code := p.code(t); code != 0 || token.Czxid == 0 {
			t.Errorf("code %d, token %v; %s", code, token, &p.stderr)
		}
	})
}

// Eight processes count in a file that only the lock protects, and no count is lost.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	const processes, rounds = 8, 4
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		dir, path := t.TempDir(), s.Path(t)
		count := `n=$(cat "$0/counter" 2>/dev/null || echo 0); echo $((n+1)) >"$0/counter"; echo "$n $ACTORLOCK_TOKEN" >>"$0/log"`
		var all sync.WaitGroup
		for range processes {
			all.Go(func() {
				for range rounds {
					p := launch(t, "", append(lockFlags(s, path), "--", "sh", "-c", count, dir)...)
					if <-p.ended; p.cmd.ProcessState.ExitCode() != 0 {
						t.Errorf("code %d; %s", p.cmd.ProcessState.ExitCode(), &p.stderr)
					}
				}
			})
		}
		all.Wait()
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		if len(lines) != processes*rounds {
			t.Errorf("%d increments, want %d", len(lines), processes*rounds)
		}
		last := ""
		for i, line := range lines {
			n, token, _ := strings.Cut(line, " ")
			if n != strconv.Itoa(i) || token <= last {
				t.Errorf("increment %d saw %s with token %s after token %s", i, n, token, last)
			}
			last = token
		}
		if nodes := s.Nodes(t, path); len(nodes) > 0 {
			t.Errorf("nodes are left: %q", nodes)
		}
		zktest.Eventually(t, timeLimit, func() bool { return s.Watches(t) == 0 }, "no watch is left")
	})
}

func TestSignalsReachTheCommand(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		p := launch(t, "", append(lockFlags(s, path), "--", "sh", "-c", `trap "echo caught; exit 3" INT; echo up; while :; do sleep 0.05; done`)...)
		p.line(t)
		p.signal(t, syscall.SIGINT)
		if got := p.line(t); got != "caught" {
			t.Errorf("the command printed %q", got)
		}
		if code := p.code(t); code != 3 {
			t.Errorf("code %d, want the command's own; %s", code, &p.stderr)
		}
		if nodes := s.Nodes(t, path); len(nodes) > 0 {
			t.Errorf("nodes are left: %q", nodes)
		}
	})
}

func TestSignalEndsTheWait(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		holder(t, s, path)
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			p := launch(t, "", append(lockFlags(s, path), "true")...)
			zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "it waits")
			p.signal(t, sig)
			if code := p.code(t); code != 128+int(sig) {
				t.Errorf("code %d after %v; %s", code, sig, &p.stderr)
			}
			if nodes := s.Nodes(t, path); len(nodes) != 1 {
				t.Errorf("the waiter has not left the queue: %q", nodes)
			}
		}
	})
}
