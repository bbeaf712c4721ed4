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

// machine describes the machine and the programs of a run.
type machine struct {
	CPU     string            `json:"cpu"`
	Cores   int               `json:"cores"`
	Memory  string            `json:"memory"`
	Kernel  string            `json:"kernel"`
	Go      string            `json:"go"`
	Java    string            `json:"java,omitempty"`
	Load    string            `json:"load"` // before the run
	Date    string            `json:"date"`
	Data    string            `json:"data"` // where the servers have it
	Servers map[string]string `json:"servers"`
	Peers   map[string]string `json:"peers"`

	Networks map[string]float64 `json:"networks_us"` // a bare round trip over each network, by the intended time
}

func (e *environment) describe(installed []peer) machine {
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

		Networks: map[string]float64{},
	}
	if filepath.Dir(e.dir) == sharedMemory {
		m.Data = "a temporary folder in memory (" + sharedMemory + ")"
	}
	for _, srv := range servers {
		if addr := e.addrs[srv.name]; addr != "" {
			m.Servers[srv.name] = srv.version(addr) + " (" + srv.about + ")"
		}
	}
	if e.externalZooKeeper {
		m.Servers["zookeeper"] = zooKeeper.version(strings.Split(e.addrs["zookeeper"], ",")[0]) + " (at " + e.addrs["zookeeper"] + ", not started by this run)"
	}
	for _, p := range installed {
		m.Peers[p.name] = p.version()
	}
	return m
}

// field returns the first value of a key in a file of /proc.
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

// output returns the first line of a program's output or error output, or "" if the program fails.
func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// moduleVersion returns a function that returns the version of a Go module in this binary.
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
	version, _, _ := strings.Cut(strings.TrimPrefix(reply, "Zookeeper version: "), "-") // the rest is the build
	return version
}
