package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// measure runs the program in this process, and returns its results.
func measure(t *testing.T, args ...string) results {
	t.Helper()
	dir := t.TempDir()
	var progress bytes.Buffer
	code, err := bench(t.Context(), append([]string{"-seconds", "0.05", "-out", dir}, args...), &progress)
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s", code, err, progress.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r results
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, "REPORT.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range images(string(report)) {
		checkSVG(t, filepath.Join(dir, file))
	}
	return r
}

// roundsOf returns the rounds of a peer in a scenario. It does not check their counts, because a short round on a busy machine
// may count nothing.
func (r results) roundsOf(scenario, peer string) (found []int) {
	for _, run := range r.Runs {
		if run.Scenario == scenario && run.Peer == peer {
			found = append(found, run.Round)
		}
	}
	slices.Sort(found)
	return found
}

func TestOnExternalServers(t *testing.T) {
	s := zktest.Embedded(t)
	r := measure(t, "-zk", s.Addr(), "-peers", "actorlock,raw,zklock", "-scenarios", "uncontended,hot64,handoff,futures")
	for scenario, peers := range map[string][]string{
		"uncontended": {"actorlock", "raw", "zklock"},
		"hot64":       {"actorlock", "raw", "zklock"},
		"handoff":     {"actorlock", "zklock"},
		"futures":     {"actorlock"},
	} {
		for _, peer := range peers {
			if got := r.roundsOf(scenario, peer); !slices.Equal(got, []int{1, 2, 3}) {
				t.Errorf("%s %s has rounds %v", scenario, peer, got)
			}
		}
	}
	for _, run := range r.Runs {
		if run.Violations != 0 || run.Peer == "actorlock" && run.Scenario == "futures" && run.OpsPerSec <= 0 {
			t.Errorf("%+v", run)
		}
	}
	children, _, err := s.Client(t).Children("/")
	if err != nil || slices.ContainsFunc(children, func(name string) bool { return strings.HasPrefix(name, "bench-") }) {
		t.Errorf("the root has %v, %v", children, err)
	}
}

// requireServers skips the test, or fails it, if ZooKeeper is not installed.
func requireServers(t *testing.T) {
	t.Helper()
	if err := zooKeeper.find(); err != nil {
		zktest.Lack(t, errors.New("no ZooKeeper on this machine (install Debian's package zookeeper)"), err)
	}
}

// Every peer is measured, in one process, in two, and by its recipes, or it is reported as missing.
func TestEveryPeer(t *testing.T) {
	requireServers(t)
	names := []string{"many256", "handoff", "cold64", "rtt2-uncontended", "ensemble-uncontended", "rw90", "semaphore", "simple-herd", "beside"}
	r := measure(t, "-scenarios", strings.Join(names, ","))
	for _, s := range plan(scenarios, peers, minRounds, 0) {
		if s.round > 1 || !slices.Contains(names, s.scenario.name) {
			continue
		}
		missing := slices.ContainsFunc(r.Missing, func(line string) bool { return strings.HasPrefix(line, s.peer.name+" is left out") })
		if missing && zktest.Exhaustive() {
			t.Errorf("%s is left out", s.peer.name)
		}
		if got := r.roundsOf(s.scenario.name, s.peer.name); missing == (len(got) > 0) || !missing && len(got) != minRounds {
			t.Errorf("%s %s: missing %v, rounds %v", s.scenario.name, s.peer.name, missing, got)
		}
	}
	for _, p := range []string{"actorlock", "actorlock-simple"} {
		for _, run := range r.Runs {
			if run.Peer == p && run.Scenario == "simple-herd" && run.Extra[packetsKey] < 4 {
				t.Errorf("%+v", run)
			}
		}
	}
}

// startProgram starts this program as a child, and returns the address of its first server when that serves.
func startProgram(t *testing.T) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-scenarios", "hot64", "-peers", "actorlock,zklock", "-seconds", "60", "-out", t.TempDir())
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "zookeeper serves at ")
	if err != nil || !ok {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	return cmd, addr
}

func serves(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func TestInterrupted(t *testing.T) {
	requireServers(t)
	cmd, addr := startProgram(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("exit code %d, want %d", got, exitInterrupted)
	}
	if serves(addr) {
		t.Errorf("ZooKeeper still serves at %s", addr)
	}
}

func TestKilled(t *testing.T) {
	requireServers(t)
	cmd, addr := startProgram(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return !serves(addr) }, "ZooKeeper ends at %s", addr)
	removeStale(runDirParent())
}

// A run removes the folders of killed runs, but not those of running ones.
func TestStaleRunDirsAreRemoved(t *testing.T) {
	parent := t.TempDir()
	stale := filepath.Join(parent, "actorlock-bench-1")
	used := filepath.Join(parent, "actorlock-bench-2")
	for _, dir := range []string{stale, used} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "lock"), "")
	}
	lock, err := lockRunDir(used, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	removeStale(parent)
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("%s is not removed: %v", stale, err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Error(err)
	}
}
