package interop

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

//go:embed java
var javaSource embed.FS

// CuratorClient is a Java process with a CuratorFramework.
type CuratorClient struct{ *Peer }

// Curator starts a Java process with a Curator client of the server, and waits for its session,
// about a second. The first call in a test binary also compiles the Java driver, which takes a few
// seconds.
func Curator(t testing.TB, addr string, opts ...PeerOption) *CuratorClient {
	t.Helper()
	classPath, err := curatorClassPath()
	if err != nil {
		zktest.Lack(t, errNoCurator, err)
	}
	classes, err := compiled()
	if err != nil {
		t.Fatalf("interop: %v", err)
	}
	dir := t.TempDir()
	for name, class := range classes {
		if err := os.WriteFile(filepath.Join(dir, name), class, 0o644); err != nil {
			t.Fatalf("interop: %v", err)
		}
	}
	return &CuratorClient{start(t, addr, opts, func(addr, session string) *exec.Cmd {
		return java(dir+string(os.PathListSeparator)+classPath, "Driver", addr, session)
	})}
}

// Mutex is an InterProcessMutex.
func (c *CuratorClient) Mutex(path string) *Lock { return c.lock("mutex", path) }

// ReadWriteLock is an InterProcessReadWriteLock: the two locks of one object, on one thread, so
// that the holder of the write lock can acquire the read lock as well.
func (c *CuratorClient) ReadWriteLock(path string) (read, write *Lock) {
	c.t.Helper()
	name := c.object("readwrite", path)
	return &Lock{c.Peer, name + "/read", name}, &Lock{c.Peer, name + "/write", name}
}

// ReadLock is the read lock of an InterProcessReadWriteLock of its own.
func (c *CuratorClient) ReadLock(path string) *Lock {
	read, _ := c.ReadWriteLock(path)
	return read
}

// WriteLock is the write lock of an InterProcessReadWriteLock of its own.
func (c *CuratorClient) WriteLock(path string) *Lock {
	_, write := c.ReadWriteLock(path)
	return write
}

// Semaphore is an InterProcessSemaphoreV2. Each Acquire takes one lease, and each Release returns
// the last one.
func (c *CuratorClient) Semaphore(path string, permits int) *Lock {
	return c.SemaphoreOfSeveral(path, permits, 1)
}

// SemaphoreOfSeveral is an InterProcessSemaphoreV2. Each Acquire takes that many leases, one after
// the other as Curator does, and each Release returns the leases of the last Acquire.
func (c *CuratorClient) SemaphoreOfSeveral(path string, permits, leases int) *Lock {
	return c.lock("semaphore", path, strconv.Itoa(permits), strconv.Itoa(leases))
}

// SemaphoreMutex is an InterProcessSemaphoreMutex.
func (c *CuratorClient) SemaphoreMutex(path string) *Lock { return c.lock("semaphoremutex", path) }

// MultiLock is an InterProcessMultiLock of mutexes.
func (c *CuratorClient) MultiLock(paths ...string) *Lock { return c.lock("multi", paths...) }

// LeaderLatch is a LeaderLatch: it is acquired when it is elected, and released when it is closed.
// Its participants are ids.
func (c *CuratorClient) LeaderLatch(path, id string) *Lock { return c.lock("latch", path, id) }

// LeaderSelector is a LeaderSelector: it is acquired when it is elected, and released when it is
// closed. Its participants are ids.
func (c *CuratorClient) LeaderSelector(path, id string) *Lock { return c.lock("selector", path, id) }

// Revoke asks the owner of a contender's node to release the lock, as Curator's Revoker does.
func (c *CuratorClient) Revoke(node string) error {
	_, err := c.call("client", "client", "revoke", node)
	return err
}

var errNoCurator = errors.New("no Apache Curator on this machine " +
	"(install Debian's packages default-jdk-headless and libcurator-recipes-java)")

func curatorClassPath() (string, error) {
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%w: %v", errNoCurator, err)
		}
	}
	classPath, err := jars.ClassPath(jars.Curator...)
	if err != nil {
		return "", fmt.Errorf("%w: %v", errNoCurator, err)
	}
	return classPath, nil
}

// java returns the command of a small virtual machine that starts quickly.
func java(classPath string, args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.jmx.log4j.disable=true", "-cp", classPath}, args...)...)
}

// compiled returns the class files of the Java driver, compiled once in a test binary.
var compiled = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, javaSource); err != nil {
		return nil, err
	}
	classPath, err := curatorClassPath()
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "java", "*.java"))
	if err != nil {
		return nil, err
	}
	args := append([]string{"-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-nowarn", "-proc:none", "-d", filepath.Join(dir, "classes"), "-cp", classPath}, sources...)
	if out, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w\n%s", err, out)
	}
	classes := map[string][]byte{}
	files := os.DirFS(filepath.Join(dir, "classes"))
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			classes[name], err = fs.ReadFile(files, name)
		}
		return err
	})
	return classes, err
})
