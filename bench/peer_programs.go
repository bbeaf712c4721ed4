package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

//go:embed peers/CuratorWorker.java
var curatorSource []byte

//go:embed peers/kazoo_worker.py
var kazooSource []byte

var curator = peer{
	name:      "curator",
	reference: true,
	about:     "Apache Curator's InterProcessMutex, InterProcessReadWriteLock or InterProcessSemaphoreV2 in Java, one per lock, shared by the threads",
	recipes:   []string{readWrite, semaphore},
	waiters:   100,
	shares:    true,
	server:    "zookeeper",
	version:   func() string { return "curator " + cmp.Or(jars.Version("curator-recipes"), "unknown") },
	program: func(dir string) (func(string) *exec.Cmd, error) {
		path, err := classPath(jars.Curator...)
		if err != nil {
			return nil, err
		}
		if err := findPrograms("java", "javac"); err != nil {
			return nil, err
		}
		source := filepath.Join(dir, "CuratorWorker.java")
		if err := os.WriteFile(source, curatorSource, 0o644); err != nil {
			return nil, err
		}
		if text, err := exec.Command("javac", "-cp", path, "-d", dir, source).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("javac: %w\n%s", err, text)
		}
		return func(addr string) *exec.Cmd {
			return exec.Command("java", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
				"-Dzookeeper.jmx.log4j.disable=true", "-cp", dir+string(os.PathListSeparator)+path, "CuratorWorker",
				addr, sessionMillis())
		}, nil
	},
}

func sessionMillis() string { return strconv.FormatInt(sessionTimeout.Milliseconds(), 10) }

// debianPython is the interpreter for which Debian installs kazoo; another may come first in PATH.
const debianPython = "/usr/bin/python3"

// kazooVersion returns "" if kazoo is not installed.
var kazooVersion = sync.OnceValue(func() string {
	return strings.TrimSpace(output(debianPython, "-c", "import kazoo; print(kazoo.__version__)"))
})

var kazoo = peer{
	name:    "kazoo",
	about:   "kazoo's Lock, Semaphore, or ReadLock and WriteLock (from 2.9 on: before, they wait for each other for ever) in Python, one per thread on one client",
	recipes: []string{readWrite, semaphore},
	server:  "zookeeper",
	version: func() string { return "kazoo " + kazooVersion() },
	rwUnusable: func() bool {
		major, minor := 0, 0
		_, err := fmt.Sscanf(kazooVersion(), "%d.%d", &major, &minor)
		return err != nil || major < 2 || major == 2 && minor < 9
	},
	program: func(dir string) (func(string) *exec.Cmd, error) {
		if output(debianPython, "-c", "import kazoo; print(kazoo)") == "" {
			return nil, fmt.Errorf("%w: no kazoo in %s", errNotInstalled, debianPython)
		}
		source := filepath.Join(dir, "kazoo_worker.py")
		if err := os.WriteFile(source, kazooSource, 0o644); err != nil {
			return nil, err
		}
		return func(addr string) *exec.Cmd {
			return exec.Command(debianPython, "-u", source, addr, sessionMillis())
		}, nil
	},
}
