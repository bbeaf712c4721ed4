package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

const (
	envRequire = "ACTORLOCK_REQUIRE_ZOOKEEPER"
	envAll     = "ACTORLOCK_EXHAUSTIVE"

	// envEmbedded is the version of embedded servers: see [Version].
	envEmbedded = "ACTORLOCK_EMBEDDED"
)

var errNotInstalled = errors.New("no ZooKeeper on this machine (install Debian's package zookeeper)")

// install is an installed ZooKeeper.
type install struct {
	java      string
	classPath string
}

// find looks for java and for ZooKeeper's jars.
func find(lookPath func(string) (string, error)) (install, error) {
	java, err := lookPath("java")
	if err != nil {
		return install{}, fmt.Errorf("%w: %v", errNotInstalled, err)
	}
	classPath, err := jars.ClassPath()
	if err != nil {
		return install{}, fmt.Errorf("%w: %v", errNotInstalled, err)
	}
	return install{java, classPath}, nil
}

// require returns the ZooKeeper of this machine. Without one it ends the test, skipped or failed.
func require(t testing.TB) install {
	t.Helper()
	inst, err := find(exec.LookPath)
	if err != nil {
		Lack(t, errNotInstalled, err)
	}
	return inst
}

// Lack ends a test that needs a program which this machine does not have. The test is skipped, and
// [Main] reports missing; with ACTORLOCK_REQUIRE_ZOOKEEPER=1 the test fails. The text of missing is
// like "no ZooKeeper on this machine (install Debian's package zookeeper)"; err is the error of the
// search.
func Lack(t testing.TB, missing, err error) {
	t.Helper()
	if os.Getenv(envRequire) == "1" {
		t.Fatalf("zktest: %v, and %s=1 demands one", err, envRequire)
	}
	lacking.add(missing.Error())
	t.Skipf("zktest: %v", err)
}

// lacking has the reasons for which tests were skipped.
var lacking reasons

type reasons struct {
	mu   sync.Mutex
	list []string
}

func (r *reasons) add(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.list, reason) {
		r.list = append(r.list, reason)
	}
}

// notice returns the line about skipped tests, or "" if no test was skipped.
func (r *reasons) notice() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return ""
	}
	return "zktest: " + strings.Join(r.list, "; ") + ": the tests that need one were skipped"
}

// command returns the command of one server, without syncs to the disk, because no test cuts the
// power.
func (inst install) command(config string, containerInterval time.Duration, heap int, flags []string) *exec.Cmd {
	return exec.Command(inst.java, append(append(machineFlags(heap), flags...),
		"-XX:-UsePerfData", // writes a file to /tmp that a killed process leaves there
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.preAllocSize=1024", // KiB of log file that are written ahead
		"-Dzookeeper.extendedTypesEnabled=true",
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", containerInterval.Milliseconds()),
		"-cp", inst.classPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)...)
}

// machineFlags returns the flags of the virtual machine for a heap of so many MiB. With the memory
// of tests it stays small. With more memory it is for a benchmark, and has the collector that Java
// chooses, as the servers of users have. It starts quickly with any: in the first seconds of a
// server, the slower compiler takes more time than it saves.
func machineFlags(heap int) []string {
	flags := []string{fmt.Sprintf("-Xmx%dm", heap), "-XX:TieredStopAtLevel=1"}
	if heap <= defaultHeap {
		flags = append(flags, "-XX:+UseSerialGC")
	}
	return flags
}

// config returns the zoo.cfg of one server. The peers are the "server.N=" lines of an ensemble.
func config(data string, port int, peers []string, o serverOptions) string {
	lines := []string{
		fmt.Sprintf("tickTime=%d", o.tick.Milliseconds()),
		"dataDir=" + data,
		fmt.Sprintf("clientPort=%d", port),
		"clientPortAddress=127.0.0.1",
		fmt.Sprintf("maxSessionTimeout=%d", o.maxSession().Milliseconds()),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
		"initLimit=50",
		"syncLimit=10", // followers give up a frozen leader after 2 s
	}
	lines = append(append(lines, peers...), o.settings...)
	return strings.Join(lines, "\n") + "\n"
}
