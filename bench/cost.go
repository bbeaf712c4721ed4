package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cost is what a load has used: time of processors, in the workers and in the servers, and packets that ZooKeeper has
// received and sent. What cannot be measured is 0, such as the time of a server that bench has not started.
type cost struct {
	client, server time.Duration
	busiest        time.Duration            // of the server's thread that has used most
	idle           time.Duration            // of all cores
	took           time.Duration            // by the clock
	threads        map[string]time.Duration // of the server, before busiest is known
	packets        float64
}

// The fields of a run with the cost of each acquire, warm-up included. They change little with the load of the machine by
// others.
const (
	clientTimeKey = "client_cpu_us"
	serverTimeKey = "server_cpu_us"
	packetsKey    = "packets"
)

// processorsKey is the time of processors that an acquire takes, in client and server.
const processorsKey = "processor time"

// The fields of a run with the number of cores that something has used on average, or left idle.
const (
	clientCoresKey = "client_cores"
	serverCoresKey = "server_cores"
	busiestKey     = "server_busiest_thread_cores"
	idleCoresKey   = "idle_cores"
)

// used returns what the workers of a peer and its servers have used since they began.
func (e *environment) used(p peer, workers []*workerProcess) (c cost) {
	for _, m := range workers {
		c.client += m.process.processorTime()
	}
	c.server = e.serverTime(e.serverOf(p))
	c.threads = map[string]time.Duration{}
	for _, s := range e.serving[e.serverOf(p)] {
		s.addThreads(c.threads)
	}
	if p.server == zooKeeper.name {
		c.packets, _ = e.packets(e.serverOf(p)) // 0 if the server does not tell
	}
	c.idle, c.took = idleTime(), time.Duration(now())
	return c
}

// serverTime returns the time of processors that the processes of a server have used.
func (e *environment) serverTime(name string) (all time.Duration) {
	for _, p := range e.serving[name] {
		all += p.processorTime()
	}
	return all
}

func (c cost) since(before cost) cost {
	d := cost{client: c.client - before.client, server: c.server - before.server, idle: c.idle - before.idle, took: c.took - before.took,
		packets: c.packets - before.packets}
	for thread, used := range c.threads {
		d.busiest = max(d.busiest, used-before.threads[thread])
	}
	return d
}

func (c cost) plus(other cost) cost {
	return cost{client: c.client + other.client, server: c.server + other.server, busiest: c.busiest + other.busiest, idle: c.idle + other.idle,
		took: c.took + other.took, packets: c.packets + other.packets}
}

// per returns the fields of a run in which that many acquires used this.
func (c cost) per(acquires int) map[string]float64 {
	each := map[string]float64{}
	for key, sum := range map[string]float64{clientTimeKey: micros(c.client), serverTimeKey: micros(c.server), packetsKey: c.packets} {
		if sum > 0 && acquires > 0 {
			each[key] = sum / float64(acquires)
		}
	}
	if c.took <= 0 || c.client <= 0 || c.server <= 0 {
		return each
	}
	for key, used := range map[string]time.Duration{clientCoresKey: c.client, serverCoresKey: c.server, busiestKey: c.busiest, idleCoresKey: c.idle} {
		each[key] = used.Seconds() / c.took.Seconds()
	}
	return each
}

// idleTime returns for how long all cores together have been idle, or 0 if the system does not tell.
func idleTime() time.Duration {
	const tick = 10 * time.Millisecond // of all Linux systems that tell it to programs
	numbers := strings.Fields(firstLine("/proc/stat"))
	if len(numbers) < 6 {
		return 0
	}
	idle, _ := strconv.ParseInt(numbers[4], 10, 64)
	waiting, _ := strconv.ParseInt(numbers[5], 10, 64) // for a disk
	return time.Duration(idle+waiting) * tick
}

// addThreads notes the time for which each thread of the process has run so far. It leaves out threads that end meanwhile.
func (p *childProcess) addThreads(to map[string]time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, file := range files {
		used, _, _ := strings.Cut(firstLine(file), " ")
		if nanos, err := strconv.ParseInt(used, 10, 64); err == nil {
			to[file] = time.Duration(nanos)
		}
	}
}

// processorTime returns the time for which all threads of the process have run so far, or 0 if it has ended.
func (p *childProcess) processorTime() time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED in Linux's clock ids of processes
	var t unix.Timespec
	if unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|ofProcess), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
