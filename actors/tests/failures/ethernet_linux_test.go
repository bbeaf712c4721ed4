package failures

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// insideNetwork is set in the environment of a test binary that runs in a network of its own.
const insideNetwork = "ACTORLOCK_TEST_IN_NETWORK"

// inOwnNetwork runs the test again in a process that has a network of its own, where it is root, and
// reports whether it is that process. Nothing of the network is left when the process has ended.
// Without the right to make one the test is skipped.
func inOwnNetwork(t *testing.T, arguments ...string) bool {
	if os.Getenv(insideNetwork) != "" {
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		zktest.Lack(t, errors.New("no ip on this machine (install Debian's package iproute2)"), err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(arguments, "-test.run", "^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), insideNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL, // which comes when the thread ends
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch text := out.String(); {
	case strings.Contains(text, "--- PASS: "+t.Name()):
		t.Log(text)
	case strings.Contains(text, "--- SKIP: "+t.Name()), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		t.Skipf("no network of its own: %v: %s", err, text)
	default:
		t.Errorf("%v: %s", err, text)
	}
	return false
}

// ethernet is the network of such a process: a bridge, which the process itself is
// at, and members, which are namespaces.
type ethernet struct {
	t       testing.TB
	members []string
}

// host is an end of the network: a member, or where the test itself runs.
type host struct{ name, address, mac string }

const (
	bridgeDevice = "hub"
	memberDevice = "eth0"
	nowhere      = "02:00:00:00:ff:ff" // no host has this Ethernet address
)

// hub is where the test itself runs.
var hub = host{"", "198.18.0.1", "02:00:00:00:00:01"}

// newNetwork makes a network without members. It skips the test if the system refuses that.
func newNetwork(t testing.TB) *ethernet {
	t.Helper()
	n := &ethernet{t: t}
	for _, command := range []string{"mount -t tmpfs none /run", "ip link set lo up", "ip link add " + bridgeDevice + " address " + hub.mac + " type bridge",
		"ip addr add " + hub.address + "/16 dev " + bridgeDevice, "ip link set " + bridgeDevice + " up"} {
		if out, err := run(command); err != nil {
			t.Skipf("%s: %v: %s", command, err, out)
		}
	}
	return n
}

func run(command string) ([]byte, error) {
	words := strings.Fields(command)
	return exec.Command(words[0], words[1:]...).CombinedOutput()
}

func (n *ethernet) run(format string, args ...any) {
	n.t.Helper()
	if out, err := run(fmt.Sprintf(format, args...)); err != nil {
		n.t.Errorf("%s: %v: %s", fmt.Sprintf(format, args...), err, out)
	}
}

// add adds a member.
func (n *ethernet) add(name string) host {
	n.t.Helper()
	n.members = append(n.members, name)
	h := host{name, fmt.Sprintf("198.18.1.%d", len(n.members)), fmt.Sprintf("02:00:00:00:01:%02x", len(n.members))}
	n.run("ip netns add %s", name)
	n.run("ip link add %s type veth peer name %s address %s netns %s", name, memberDevice, h.mac, name)
	n.run("ip link set %s master %s up", name, bridgeDevice)
	n.run("ip -n %s addr add %s/16 dev %s", name, h.address, memberDevice)
	n.run("ip -n %s link set %s up", name, memberDevice)
	n.run("ip -n %s link set lo up", name)
	return h
}

// command returns the command that executes this test binary at a host.
func (h host) command() *exec.Cmd {
	if h.name == "" {
		return exec.Command(os.Args[0])
	}
	return exec.Command("ip", "netns", "exec", h.name, os.Args[0])
}

// cut loses all that one host sends to another from now on, without a word: it goes to an Ethernet
// address that nobody has.
func (n *ethernet) cut(from, to host) { n.reach(from, to, nowhere) }

// heal ends a cut.
func (n *ethernet) heal(from, to host) { n.reach(from, to, to.mac) }

func (n *ethernet) reach(from, to host, mac string) {
	n.t.Helper()
	device, where := memberDevice, "-n "+from.name
	if from.name == "" {
		device, where = bridgeDevice, ""
	}
	n.run("ip %s neigh replace %s lladdr %s dev %s nud permanent", where, to.address, mac, device)
}

// breakConnections breaks the connections of a member to another host, and returns how many it broke: it
// closes its ends, of which the other one hears if it is reached.
func (n *ethernet) breakConnections(from, to host) int {
	out, _ := run("ip netns exec " + from.name + " ss -HnK dst " + to.address) // it fails also if one has ended meanwhile
	return bytes.Count(out, []byte("tcp"))
}
