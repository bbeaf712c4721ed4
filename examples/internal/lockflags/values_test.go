package lockflags

import (
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "16777216": 16 << 20, "16MiB": 16 << 20, "1024KiB": 1 << 20, "1GiB": 1 << 30, "7B": 7} {
		if n, err := parseSize(text); n != want || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	if n, err := parseSize("4GiB"); math.MaxInt < 4<<30 && err == nil || n < 0 { // 32 bits hold no such number
		t.Errorf("4GiB: %d, %v", n, err)
	}
	for _, text := range []string{"", "MiB", "-1", "16M", "16MB", "16 MiB", "1.5MiB", "99999999999", "0x10", "16iB", "16MiBMiB"} {
		if n, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// A value of the environment is refused with the same sentence as one of the command line.
func TestEnvironmentValue(t *testing.T) {
	var f Flags
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f.Define(set)
	lookup := func(name string) (string, bool) { return "5", name == "ACTORLOCK_SESSION" }
	if err := f.ReadEnvironment(set, lookup); err == nil || !strings.Contains(err.Error(), `ACTORLOCK_SESSION: "5": it must be a number with a unit, as in 5s`) {
		t.Error(err)
	}
}

// asMounted is the environment variable by which the test runs again in a mount namespace of its
// own.
const asMounted = "ACTORLOCK_TEST_SECRET"

// A secret that all users may read is refused, unless its mount is read-only, as Kubernetes mounts
// it.
func TestReadOnlyMount(t *testing.T) {
	if file := os.Getenv(asMounted); file != "" {
		if isPublic(file) {
			t.Error("the file on a read-only mount is refused")
		}
		return
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "auth")
	if err := os.WriteFile(file, []byte("digest:user:password\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if !isPublic(file) {
		t.Error("the file is accepted")
	}
	const mount = `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$1" -test.run 'TestReadOnlyMount$' -test.v`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, folder, os.Args[0])
	cmd.Env = append(os.Environ(), asMounted+"="+file)
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case strings.Contains(text, "--- PASS: TestReadOnlyMount"):
	case strings.Contains(text, "--- FAIL: TestReadOnlyMount"):
		t.Error(text)
	default:
		t.Skipf("no mounts in a user namespace: %v: %s", err, text)
	}
}
