package interop

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

var errNoShell = errors.New("no ZooKeeper shell on this machine (install Debian's packages default-jre-headless and zookeeper)")

// Shell runs commands in ZooKeeper's own shell, zkCli.sh, and returns its output. It blocks until
// the shell has ended, after the last command or at the first command that it cannot run.
func Shell(t testing.TB, addr string, commands ...string) string {
	t.Helper()
	_, err := exec.LookPath("java")
	classPath, missing := jars.ClassPath("commons-cli")
	if err = errors.Join(err, missing); err != nil {
		zktest.Lack(t, errNoShell, err)
	}
	cmd := java(classPath, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
		"org.apache.zookeeper.ZooKeeperMain", "-server", addr)
	var out, log outputTail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(append(commands, "quit"), "\n")+"\n"), &out, &log
	<-zktest.Spawn(t, cmd).Done()
	if !cmd.ProcessState.Success() {
		t.Errorf("interop: the shell ended with %v\n%s%s", cmd.ProcessState, &out, &log)
	}
	return out.String() + log.String()
}
