//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/servetest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// says is a command that says that it begins with its partition and token, and runs until it is stopped.
var says = []string{"--", "sh", "-c", `echo "$ACTORLOCK_PARTITION $0 $ACTORLOCK_TOKEN $ACTORLOCK_PATH $ACTORLOCK_NODE"; exec sleep 1000`, "{}"}

// tokens has the token of the last term of each partition that a test has seen.
type tokens map[string]actors.Token

// begins waits until the command of another partition begins, and checks what it says.
func (seen tokens) begins(t *testing.T, p *lockrunProcess, group string) string {
	t.Helper()
	line := p.line(t)
	f := strings.Fields(line)
	if len(f) != 5 || f[0] != f[1] || f[3] != fmt.Sprintf("%s/partitions/%05s", group, f[0]) || !strings.HasPrefix(f[4], f[3]+"/_c_") {
		t.Fatalf("a command printed %q", line)
	}
	token, err := actors.ParseToken(f[2])
	if err != nil {
		t.Fatal(err)
	}
	if last, again := seen[f[0]]; again && token.Compare(last) <= 0 {
		t.Errorf("partition %s: token %v comes after %v", f[0], token, last)
	}
	seen[f[0]] = token
	return f[0]
}

// Each partition has its command in one of two lockruns. When one is killed, its commands end with it, and
// the other one starts them once its session has expired.
func TestPartitions(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) { checkPartitions(t, s, "-zk", s.Addr(), "-session", "4s") })
	t.Run("lock server", func(t *testing.T) {
		zk := zktest.Embedded(t)
		addr, _ := servetest.Start(t, zk, 4*time.Second, nil)
		checkPartitions(t, zk, "-server", addr, "-insecure")
	})
}

func checkPartitions(t *testing.T, s *zktest.Server, server ...string) {
	t.Parallel()
	const n = 4
	path, seen := s.Path(t), tokens{}
	args := append(append(server, "-lock", path, "-partitions", fmt.Sprint(n)), says...)
	first, firstHas := launch(t, "", args...), map[string]bool{}
	for range n {
		firstHas[seen.begins(t, first, path)] = true
	}
	if len(firstHas) != n {
		t.Fatalf("the first one has %v", firstHas)
	}
	second := launch(t, "", args...)
	moved := map[string]bool{}
	for range n / 2 { // the bound on the load of a member is the mean here
		moved[seen.begins(t, second, path)] = true
	}
	first.signal(t, syscall.SIGKILL)
	killed := time.Now()
	for range n - len(moved) {
		if p := seen.begins(t, second, path); moved[p] {
			t.Errorf("partition %s begins again", p)
		}
	}
	t.Logf("the commands of the one that was killed begin after %v", time.Since(killed).Round(time.Millisecond))
	first.waitOutputEnd(t) // its commands have ended
	second.signal(t, syscall.SIGTERM)
	if code := second.code(t); code != 143 {
		t.Errorf("code %d; %s", code, &second.stderr)
	}
	second.waitOutputEnd(t)
	for p := range n {
		if nodes := s.Nodes(t, fmt.Sprintf("%s/partitions/%05d", path, p)); len(nodes) > 0 {
			t.Errorf("partition %d: nodes are left: %q", p, nodes)
		}
	}
}

// A command that does not end keeps its partition for -grace, and is killed then.
func TestPartitionsGrace(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	flags := lockFlags(s, path, "-partitions", "2", "-grace", "2s", "--", "sh", "-c")
	first := launch(t, "", append(flags, `trap "echo asked $0" TERM; echo up $0; while :; do sleep 0.02; done`, "{}")...)
	first.line(t)
	first.line(t)
	second := launch(t, "", append(flags, "echo up $0; exec sleep 1000", "{}")...)
	up, asked := second.line(t), first.line(t)
	if number, is := strings.CutPrefix(asked, "asked "); !is || up != "up "+number {
		t.Errorf("%q and %q", asked, up)
	}
	if text := first.stderr.String(); !strings.Contains(text, "has not ended 2s after the signal, and is killed") {
		t.Errorf("%s", text)
	}
	first.signal(t, syscall.SIGINT) // to its other command, too, which ignores it
	if code := first.code(t); code != 130 {
		t.Errorf("code %d; %s", code, &first.stderr)
	}
}

// A command that ends by itself begins again. lockrun ends if the command cannot be run, and if the group
// has another number of partitions.
func TestPartitionsEnd(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	p := launch(t, "", lockFlags(s, path, "-partitions", "1", "--", "sh", "-c", "echo up; exit 7")...)
	p.line(t)
	p.line(t)
	if text := p.stderr.String(); !strings.Contains(text, "the command of partition 0 has ended after ") || !strings.Contains(text, "with exit code 7") {
		t.Errorf("%s", text)
	}
	if p := endsWith(t, exitUsage, lockFlags(s, path, "-partitions", "2", "--", "true")...); !strings.Contains(p.stderr.String(), "the number cannot change") {
		t.Errorf("%s", &p.stderr)
	}
	endsWith(t, exitNotFound, lockFlags(s, s.Path(t), "-partitions", "2", "--", "no-such-command")...)
	endsWith(t, exitNotExecutable, lockFlags(s, s.Path(t), "-partitions", "2", "--", "/")...)
}

// A lockrun that goes on after a pause kills its commands, whose partitions another one has, and takes
// part again.
func TestPartitionsPaused(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for some seconds
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		path, seen := s.Path(t), tokens{}
		args := append(lockFlags(s, path, "-session", "4s", "-partitions", "2"), says...)
		first := launch(t, "", args...)
		seen.begins(t, first, path)
		seen.begins(t, first, path)
		second := launch(t, "", args...)
		seen.begins(t, second, path)
		first.signal(t, syscall.SIGSTOP)
		seen.begins(t, second, path)
		first.signal(t, syscall.SIGCONT)
		seen.begins(t, first, path)
		if text := first.stderr.String(); !strings.Contains(text, "was lost, and its command was stopped") {
			t.Errorf("%s", text)
		}
	})
}
