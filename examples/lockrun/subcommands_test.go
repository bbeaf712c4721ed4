//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/examples/internal/servetest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// output runs lockrun to its end, and returns its standard output. It must end with the code.
func output(t *testing.T, code int, args ...string) string {
	t.Helper()
	p := launch(t, "", args...)
	var lines []string
	for line := range p.lines {
		lines = append(lines, line)
	}
	if got := p.code(t); got != code {
		t.Errorf("%q: code %d, want %d; %s", args, got, code, &p.stderr)
	}
	return strings.Join(lines, "\n")
}

// objects parses an array of JSON.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil || all == nil {
		t.Fatalf("%v: %q", err, text)
	}
	return all
}

// The subcommands who and watch show the contenders of all libraries in their order, and ls shows
// the lock. break takes the lock from a holder of Curator's.
func TestContendersOfAllLibraries(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Real(t)
	path := s.Path(t) + "/orders"
	curator := interop.Curator(t, s.Addr()).Mutex(path)
	if ok, err := curator.Acquire(timeLimit); !ok || err != nil {
		t.Fatal(ok, err)
	}
	kazoo := interop.Kazoo(t, s.Addr()).Lock(path, "-lock-")
	kazooHolds := kazoo.Begin(timeLimit)
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "kazoo waits")
	ours := launch(t, "", append(lockFlags(s, path, "-v"), "--", "sh", "-c", "echo up; sleep 1000")...)
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 3 }, "lockrun waits")

	watched := launch(t, "", "watch", "-json", path, "-zk", s.Addr())
	text := output(t, 0, "who", "-zk", s.Addr(), "-json", path)
	if line := watched.line(t); line != text {
		t.Errorf("watch shows %s, who %s", line, text)
	}
	all := objects(t, text)
	if len(all) != 3 {
		t.Fatalf("%d contenders: %s", len(all), text)
	}
	host, _ := os.Hostname()
	for i, want := range []map[string]any{
		{"holds": true, "kind": "exclusive"},
		{"holds": false, "kind": "exclusive"},
		{"holds": false, "kind": "exclusive", "owner": "sh", "host": host, "pid": float64(ours.cmd.Process.Pid)},
	} {
		got := all[i]
		for key, value := range want {
			if got[key] != value {
				t.Errorf("place %d: %s is %v, want %v", i, key, got[key], value)
			}
		}
		since, err := time.Parse(time.RFC3339, got["since"].(string))
		if got["place"] != float64(i) || err != nil || time.Since(since).Abs() > timeLimit || !strings.HasPrefix(got["node"].(string), path+"/") ||
			!strings.HasPrefix(got["session"].(string), "0x") {
			t.Errorf("place %d: %v, %v", i, got, err)
		}
	}
	if keys := slices.Sorted(maps.Keys(all[1])); !slices.Equal(keys, []string{"data", "holds", "kind", "node", "place", "session", "since"}) {
		t.Errorf("kazoo's has %q", keys) // its data is its identifier
	}
	if table := output(t, 0, "ls", "-zk", s.Addr(), "/"); !strings.Contains(table, path+" ") || !strings.Contains(table, "mutex") {
		t.Errorf("ls / shows\n%s", table)
	}
	for _, part := range []string{"mutex, 1 holder, 2 waiters", "sh, " + all[2]["program"].(string), "PLACE"} {
		if table := output(t, 0, "who", path, "-zk", s.Addr()); !strings.Contains(table, part) {
			t.Errorf("%q is not in\n%s", part, table)
		}
	}
	list := objects(t, output(t, 0, "ls", "-json", "-zk", s.Addr(), strings.TrimSuffix(path, "/orders")))
	if len(list) != 1 || list[0]["path"] != path || list[0]["recipe"] != "mutex" || list[0]["waiters"] != 2.0 || len(list[0]["holders"].([]any)) != 1 {
		t.Errorf("ls: %v", list)
	}
	zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(ours.stderr.String(), "at place 2 of 3, held by") }, "-v prints the place")

	broken := objects(t, output(t, 0, "break", path, "-zk", s.Addr(), "-yes", "-json", "-grace", "1ms"))
	if len(broken) != 1 || broken[0]["node"] != all[0]["node"] || broken[0]["outcome"] != "broken" {
		t.Errorf("break: %v", broken)
	}
	if r := <-kazooHolds; !r.Held || r.Err != nil {
		t.Errorf("kazoo does not hold after the break: %+v", r)
	}
	if err := kazoo.Release(); err != nil {
		t.Error(err)
	}
	if got := ours.line(t); got != "up" {
		t.Errorf("printed %q", got)
	}
	zktest.Eventually(t, timeLimit, func() bool {
		line := watched.line(t)
		return strings.Contains(line, `"owner":"sh"`) && len(objects(t, line)) == 1
	}, "watch shows lockrun alone")
	watched.signal(t, syscall.SIGINT)
	if code := watched.code(t); code != 130 {
		t.Errorf("watch: code %d; %s", code, &watched.stderr)
	}
	ours.signal(t, syscall.SIGTERM)
	ours.code(t)
	for _, part := range []string{"waits for " + path, "holds " + path + " after", "released " + path + " after"} {
		if !strings.Contains(ours.stderr.String(), part) {
			t.Errorf("-v: %q is not in %s", part, ours.stderr.String())
		}
	}
}

// The output for a lock without contenders is an empty array.
func TestFreeLock(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		for _, args := range []string{"who", "ls", "revoke", "break -yes"} {
			words := append(strings.Fields(args), path, "-zk", s.Addr())
			if text := output(t, 0, append(words, "-json")...); text != "[]" {
				t.Errorf("%s: %s", args, text)
			}
			if text := output(t, 0, words...); !strings.Contains(text, path) {
				t.Errorf("%s: %s", args, text)
			}
		}
	})
}

// A holder with -on-revoke gets the signal.
func TestOnRevoke(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		for _, name := range []string{"USR1", "sigusr1"} {
			p := launch(t, "", append(lockFlags(s, path, "-on-revoke", name), "--", "sh", "-c", `trap "exit 3" USR1; echo up; while :; do sleep 0.05; done`)...)
			p.line(t)
			if text := output(t, 0, "revoke", "-wait", "1m", path, "-zk", s.Addr()); !strings.HasPrefix(text, "released: sh, ") {
				t.Errorf("revoke: %s", text)
			}
			if code := p.code(t); code != 3 {
				t.Errorf("code %d, want the command's own; %s", code, &p.stderr)
			}
		}
	})
}

// A holder without -on-revoke goes on until its lock is broken. One waiter and one lease are
// revoked and broken by their nodes.
func TestBreak(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		first := holder(t, s, path)
		text := output(t, exitNotAcquired, "revoke", "-json", "-wait", "1ms", path, "-zk", s.Addr())
		if all := objects(t, text); len(all) != 1 || all[0]["outcome"] != "asked" {
			t.Errorf("revoke: %s", text)
		}
		zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(first.stderr.String(), "another client asks for "+path) }, "lockrun prints that")
		waiter := launch(t, "", append(lockFlags(s, path), "true")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "it waits")
		all := objects(t, output(t, 0, "who", "-json", path, "-zk", s.Addr()))
		node := all[1]["node"].(string)
		if text := output(t, 0, "break", "-yes", "-grace", "0", node, "-zk", s.Addr()); !strings.Contains(text, "broken: true, ") || !strings.HasSuffix(text, node) {
			t.Errorf("break of a waiter: %s", text)
		}
		if text := output(t, 0, "break", "-yes", "-grace", "0", node, "-zk", s.Addr()); !strings.Contains(text, "does not exist: nothing to do") {
			t.Errorf("another break of the waiter: %s", text)
		}
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the waiter queues again")
		output(t, 0, "break", "-yes", "-grace", "1ms", path, "-zk", s.Addr())
		if code := first.code(t); code != exitLost {
			t.Errorf("the holder's code is %d; %s", code, &first.stderr)
		}
		if code := waiter.code(t); code != 0 {
			t.Errorf("the waiter's code is %d; %s", code, &waiter.stderr)
		}
	})
}

// ofTwoData is data that must not reach a terminal as they are.
const ofTwoData = "of \x1b \u202e two"

// The subcommands show the leases of a semaphore at its path, and break a single one.
func TestSemaphoreOfTwo(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		ofTwo := []string{"-mode", "semaphore", "-permits", "2"}
		one, two := holder(t, s, path, ofTwo...), holder(t, s, path, append(ofTwo, "-data", ofTwoData)...)
		all := objects(t, output(t, 0, "who", "-json", path, "-zk", s.Addr()))
		if len(all) != 2 || all[0]["holds"] != true || all[1]["holds"] != true || all[1]["data"] != ofTwoData {
			t.Fatalf("%v", all)
		}
		if all[1]["owner"] != "sh" || all[1]["pid"] != float64(two.cmd.Process.Pid) || all[1]["host"] != all[0]["host"] || all[1]["program"] != all[0]["program"] {
			t.Errorf("-data hides the process: %v", all[1])
		}
		if table := output(t, 0, "who", path, "-zk", s.Addr()); !strings.Contains(table, `of \x1b \u202e two`) {
			t.Errorf("the data in the table:\n%s", table)
		}
		three := holder(t, s, path, "-mode", "semaphore", "-permits", "3")
		for _, want := range []string{"of [2 3] permits, on which its processes do not agree, 3 holders", "of 2 permits, 2 holders"} {
			if table := output(t, 0, "who", path, "-zk", s.Addr()); !strings.Contains(table, want) {
				t.Errorf("%q is missing in\n%s", want, table)
			}
			three.signal(t, syscall.SIGTERM)
			three.code(t)
		}
		output(t, 0, "break", "-yes", "-grace", "1ms", all[1]["node"].(string), "-zk", s.Addr())
		if code := two.code(t); code != exitLost {
			t.Errorf("code %d; %s", code, &two.stderr)
		}
		if all := objects(t, output(t, 0, "who", "-json", path, "-zk", s.Addr())); len(all) != 1 || all[0]["pid"] != float64(one.cmd.Process.Pid) {
			t.Errorf("%v", all)
		}
	})
}

// A token is verification by the environment of a command, by a node, and by the path of the lock.
func TestVerify(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		p := launch(t, "", append(lockFlags(s, path), "--", "sh", "-c", `echo "$ACTORLOCK_TOKEN"; echo "$ACTORLOCK_NODE"; sleep 1000`)...)
		token, node := p.line(t), p.line(t)
		for _, where := range []string{path, node} {
			if text := output(t, 0, "verify", "-zk", s.Addr(), "-json", token, where); !strings.Contains(text, `"holds":true`) || !strings.Contains(text, node) {
				t.Errorf("%s: %s", where, text)
			}
		}
		inside := launch(t, "", "verify", "-zk", s.Addr())
		if code := inside.code(t); code != exitUsage {
			t.Errorf("without a token: code %d; %s", code, &inside.stderr)
		}
		t.Setenv("LOCKRUN", os.Args[0])
		nested := launch(t, "", append(lockFlags(s, s.Path(t)), "--", "sh", "-c", asLockrun+`=1 exec "$LOCKRUN" verify -zk "$0"`, s.Addr())...)
		if got := nested.line(t); !strings.HasPrefix(got, "the token holds, by ") {
			t.Errorf("in a command: %s", got)
		}
		p.signal(t, syscall.SIGTERM)
		p.code(t)
		for _, where := range []string{path, node} {
			if text := output(t, exitLost, "verify", "-zk", s.Addr(), "-json", token, where); !strings.Contains(text, `"holds":false`) || !strings.Contains(text, `"reason":`) {
				t.Errorf("%s: %s", where, text)
			}
		}
	})
}

// A server of the other kind is named by the other flag.
func TestServerOfOtherKind(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	s := zktest.Embedded(t)
	addr, _ := servetest.Start(t, s, 0, nil)
	for want, flags := range map[string][]string{
		"-server names it in place of -zk": {"-zk", addr},
		"-zk names it in place of -server": {"-server", s.Addr(), "-insecure"},
	} {
		t.Run(flags[0], func(t *testing.T) {
			t.Parallel()
			p := launch(t, "", append([]string{"-wait", "8s", "-lock", "/a"}, append(flags, "true")...)...)
			if code, text := p.code(t), p.stderr.String(); code != exitUnavailable || !strings.Contains(text, want) {
				t.Errorf("%q: code %d; %s", flags, code, text)
			}
		})
	}
}

// who names the servers that cannot be reached: all of them, or one beside those that can.
func TestWhoNamesServers(t *testing.T) {
	defer func(before time.Duration) { lookLimit = before }(lookLimit)
	const one, two = "127.0.0.1:1", "127.0.0.1:2" // no server listens there
	lookLimit = time.Second
	var both sync.WaitGroup // each waits for lookLimit
	for _, flags := range [][]string{{"-zk", one + "," + two}, {"-server", one + "," + two, "-insecure"}} {
		both.Go(func() {
			start := time.Now()
			code, err := lockrun(append([]string{"who", "/a"}, flags...))
			if code != exitUnavailable || err == nil || !strings.Contains(err.Error(), "the server "+one+" cannot be reached") || !strings.Contains(err.Error(), "the server "+two+" cannot be reached") {
				t.Errorf("%q: code %d, %v", flags, code, err)
			}
			t.Logf("%q: after %v", flags, time.Since(start))
		})
	}
	both.Wait()
	s := zktest.Embedded(t)
	if text := endsWith(t, 0, "who", "-zk", s.Addr()+","+two, "/a").stderr.String(); !strings.Contains(text, "the server "+two+" cannot be reached") || strings.Contains(text, s.Addr()) {
		t.Error(text)
	}
	addr, _ := servetest.Start(t, s, 0, nil)
	if text := endsWith(t, 0, "who", "-server", addr+","+two, "-insecure", "/a").stderr.String(); !strings.Contains(text, "the server "+two+" cannot be reached") || strings.Contains(text, addr) {
		t.Error(text)
	}
}
