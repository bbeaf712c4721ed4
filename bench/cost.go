package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cost is what a load has used: time of processors, in the workers and in the servers, and packets that ZooKeeper has
// received and sent. What cannot be measured is 0, such as the time of a server that bench has not started.
type cost struct {
	client, server time.Duration
	packets        float64
}

// The fields of a run with the cost of each acquire, warm-up included. They change little with the load of the machine by
// others.
const (
	clientTimeKey = "client_cpu_us"
	serverTimeKey = "server_cpu_us"
	packetsKey    = "packets"
)

// used returns what the workers of a peer and its servers have used since they began.
func (e *environment) used(p peer, workers []*workerProcess) (c cost) {
	for _, m := range workers {
		c.client += m.process.processorTime()
	}
	c.server = e.serverTime(e.serverOf(p))
	if p.server == zooKeeper.name {
		c.packets, _ = e.packets(e.serverOf(p)) // 0 if the server does not tell
	}
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
	return cost{c.client - before.client, c.server - before.server, c.packets - before.packets}
}

func (c cost) plus(other cost) cost {
	return cost{c.client + other.client, c.server + other.server, c.packets + other.packets}
}

// per returns the fields of a run in which that many acquires used this.
func (c cost) per(acquires int) map[string]float64 {
	each := map[string]float64{}
	for key, sum := range map[string]float64{clientTimeKey: micros(c.client), serverTimeKey: micros(c.server), packetsKey: c.packets} {
		if sum > 0 && acquires > 0 {
			each[key] = sum / float64(acquires)
		}
	}
	return each
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
