package zktest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Unlike other packages this one writes the line about skipped tests to the go command itself, so
// that `go test ./...` shows it, and shows it once.
func TestMain(m *testing.M) {
	parseFlags()
	os.Exit(run(m.Run, func(line string) {
		if !writeToGo(line) {
			fmt.Fprintln(os.Stderr, line)
		}
	}))
}

// helper runs one of the tests named TestHelper… in a process of its own.
func helper(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v", "-test.count=1")
	cmd.Env = append(append(os.Environ(), "ZKTEST_HELPER="+name), env...)
	return cmd
}

func helperOnly(t *testing.T) {
	if os.Getenv("ZKTEST_HELPER") != t.Name() {
		t.Skip("runs as a helper process")
	}
}

func TestHelperReal(t *testing.T) {
	helperOnly(t)
	t.Log("address", Real(t).Addr())
}

func TestHelperOrphan(t *testing.T) {
	helperOnly(t)
	s := Own(t)
	fmt.Printf("\npid %d\n", s.nodes[0].proc.cmd.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the process is killed
}

func TestWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	var r reasons
	r.add(errNotInstalled.Error())
	notice := r.notice()
	for _, c := range []struct{ name, require, want, not string }{
		{"skips and reports that", "", notice, "FAIL"},
		{"fails in CI", "1", "FAIL", notice},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := helper(t, "TestHelperReal", "ACTORLOCK_ZOOKEEPER_JARS"+"="+t.TempDir(), envRequire+"="+c.require).CombinedOutput()
			if (err != nil) != (c.require == "1") {
				t.Errorf("helper ended with %v", err)
			}
			if s := string(out); strings.Count(s, c.want) == 0 || strings.Contains(s, c.not) {
				t.Errorf("the output should have %q and not %q:\n%s", c.want, c.not, s)
			}
		})
	}
}

// The kernel ends the servers of a killed run.
func TestChildEndsWithKilledParent(t *testing.T) {
	t.Parallel()
	require(t)
	linuxOnly(t)
	cmd := helper(t, "TestHelperOrphan", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(stdout); pid == 0 && lines.Scan(); {
		fmt.Sscanf(lines.Text(), "pid %d", &pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pid == 0 {
		t.Fatal("the helper has started no server")
	}
	Eventually(t, timeLimit, func() bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(args), "zookeeper")
	}, "process %d is gone", pid)
}
