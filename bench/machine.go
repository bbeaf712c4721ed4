package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine says where the figures come from.
type machine struct {
	CPU     string            `json:"cpu"`
	Cores   int               `json:"cores"`
	Memory  string            `json:"memory"`
	Kernel  string            `json:"kernel"`
	Go      string            `json:"go"`
	Java    string            `json:"java,omitempty"`
	Load    string            `json:"load"` // before the run
	Date    string            `json:"date"`
	Data    string            `json:"data"` // where the servers keep it
	Servers map[string]string `json:"servers"`
	Peers   map[string]string `json:"peers"`
}

func (s *site) describe(installed []peer) machine {
	m := machine{
		CPU:     field("/proc/cpuinfo", "model name"),
		Cores:   runtime.NumCPU(),
		Memory:  field("/proc/meminfo", "MemTotal"),
		Kernel:  firstLine("/proc/sys/kernel/osrelease"),
		Go:      runtime.Version(),
		Java:    output("java", "-version"),
		Load:    firstLine("/proc/loadavg"),
		Date:    time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		Data:    "a temporary folder on disk",
		Servers: map[string]string{},
		Peers:   map[string]string{},
	}
	if filepath.Dir(s.dir) == sharedMemory {
		m.Data = "a temporary folder in memory (" + sharedMemory + ")"
	}
	for _, srv := range servers {
		if addr := s.addrs[srv.name]; addr != "" {
			m.Servers[srv.name] = srv.version(addr) + " (" + srv.about + ")"
		}
	}
	if s.foreign {
		m.Servers["zookeeper"] = zooKeeper.version(strings.Split(s.addrs["zookeeper"], ",")[0]) + " (at " + s.addrs["zookeeper"] + ", not started by this run)"
	}
	for _, p := range installed {
		m.Peers[p.name] = p.version()
	}
	return m
}

// field gives the first value that a file of /proc has for a key.
func field(file, key string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// output gives the first line that a program prints, on whatever it prints, and "" if it cannot be run.
func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// moduleVersion tells with which version of a Go module this binary was built.
func moduleVersion(path string) func() string {
	return func() string {
		info, _ := debug.ReadBuildInfo()
		if info != nil {
			for _, dep := range info.Deps {
				if dep.Path == path {
					return fmt.Sprintf("%s %s", path, dep.Version)
				}
			}
		}
		return path
	}
}

func zooKeeperVersion(addr string) string {
	reply, err := fourLetter(strings.SplitN(addr, "/", 2)[0], "srvr")
	if err != nil {
		return "unknown"
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(reply, "Zookeeper version: "), "-") // what follows is the build
	return version
}
