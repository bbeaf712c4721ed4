package zktest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindWithoutJava(t *testing.T) {
	_, err := find(func(string) (string, error) { return "", errors.New("not found") })
	if !errors.Is(err, errNotInstalled) {
		t.Errorf("error %v", err)
	}
}

func TestNoticeNamesEveryReasonOnce(t *testing.T) {
	var r reasons
	if got := r.notice(); got != "" {
		t.Errorf("%q without a skipped test", got)
	}
	for _, reason := range []string{"no program a", "no program b", "no program a"} {
		r.add(reason)
	}
	if got := r.notice(); got != "zktest: no program a; no program b: the tests that need one were skipped" {
		t.Errorf("%q", got)
	}
}

// A benchmark's server has the collector that Java chooses.
func TestServerWithMoreMemory(t *testing.T) {
	for heap, small := range map[int]bool{defaultHeap: true, defaultHeap + 1: false} {
		flags := install{java: "java"}.command("zoo.cfg", 0, heap, nil).Args
		if slices.Contains(flags, "-XX:+UseSerialGC") != small || !slices.Contains(flags, fmt.Sprintf("-Xmx%dm", heap)) {
			t.Errorf("with %d MiB: %q", heap, flags)
		}
	}
}

func TestStartFailureShowsTheLog(t *testing.T) {
	t.Parallel()
	inst := require(t)
	o := collect([]ServerOption{Setting("syncLimit", "no number")})
	s, err := launch(inst, t.TempDir(), 1, o)
	if err == nil {
		s.close()
		t.Fatal("a server with a broken configuration has started")
	}
	if !strings.Contains(err.Error(), "no number") {
		t.Errorf("the error does not show why: %v", err)
	}
}

// The port was free when it was chosen, and belongs to another program when the server listens.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	s := Own(t)
	taken := s.nodes[0]
	other := &serverProcess{install: taken.install, heap: taken.heap, dir: filepath.Join(t.TempDir(), "other"), port: taken.port}
	if err := other.write("1", config(other.data(), other.port.number, nil, collect(nil))); err != nil {
		t.Fatal(err)
	}
	defer other.kill()
	if err := other.start(TimeLimit); !errors.Is(err, errPortTaken) {
		t.Errorf("started on a taken port: %v", err)
	}
}
