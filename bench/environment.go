package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// environment holds the servers, workers and folder of a run of bench.
type environment struct {
	dir               string
	remove            func()
	length            time.Duration // of a peer in a round
	partitions        int
	progress          io.Writer
	addrs             map[string]string          // of the servers, by name
	serving           map[string][]*childProcess // servers that bench has started, by name
	programs          map[string]func(addr string) *exec.Cmd
	workers           map[string][]*workerProcess
	paths             int // number of paths that newPath has returned
	root              string
	externalZooKeeper bool                        // ZooKeeper was started by the user
	missing           map[string]string           // reasons, by the name of a peer that cannot be measured
	route             route                       // that the workers use
	networks          map[time.Duration]string    // addresses of proxies that stand for networks, by the round-trip time
	bareRoundTrips    map[time.Duration][]float64 // in microseconds, of each run over that network
}

// openEnvironment starts the servers that the peers need, and checks which peers are installed.
func openEnvironment(ctx context.Context, o *options, progress io.Writer) (*environment, error) {
	dir, remove, err := makeRunDir()
	if err != nil {
		return nil, err
	}
	e := &environment{dir: dir, remove: remove, length: o.length, partitions: o.partitions, progress: progress, addrs: map[string]string{}, serving: map[string][]*childProcess{},
		programs: map[string]func(string) *exec.Cmd{}, workers: map[string][]*workerProcess{}, missing: map[string]string{},
		networks: map[time.Duration]string{}, bareRoundTrips: map[time.Duration][]float64{},
		root: fmt.Sprintf("/bench-%d-%d", os.Getpid(), time.Now().Unix())}
	err = e.startServers(ctx, o)
	e.findPeers(o)
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(e.missing) == len(o.peers) || o.compares && len(e.missing) > 0:
		err = fmt.Errorf("nothing to measure: %s", strings.Join(values(e.missing), "; "))
	case e.externalZooKeeper:
		err = e.reachZooKeeper(ctx)
	case e.addrs[zooKeeper.name] != "":
		err = e.warmServer(ctx, zooKeeper.name, min(40*o.length, 20*time.Second))
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// reachZooKeeper opens a session at the ZooKeeper that the user has started.
func (e *environment) reachZooKeeper(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conn, err := dialZooKeeper(ctx, e.addrs["zookeeper"])
	if err != nil {
		e.externalZooKeeper = false // close has nothing to remove there
		return fmt.Errorf("-zk: %w", err)
	}
	conn.Close()
	return nil
}

// startServers starts the servers that the peers need, and records those that are not installed. It fails if a server
// does not start.
func (e *environment) startServers(ctx context.Context, o *options) error {
	var mu sync.Mutex
	var starting errgroup.Group
	for _, srv := range servers {
		if !slices.ContainsFunc(o.peers, func(p peer) bool { return p.server == srv.name }) {
			continue
		}
		if srv.name == "zookeeper" && o.zk != "" {
			e.addrs[srv.name], e.externalZooKeeper = o.zk, true
			continue
		}
		starting.Go(func() error {
			p, addr, err := (*childProcess)(nil), "", srv.find()
			if err == nil {
				p, addr, err = srv.start(ctx, e.dir)
			}
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errNotInstalled) {
				e.missing[srv.name] = err.Error()
				return nil
			}
			if err != nil {
				return err
			}
			e.addrs[srv.name] = addr
			e.serving[srv.name] = append(e.serving[srv.name], p)
			fmt.Fprintf(e.progress, "%s serves at %s\n", srv.name, addr)
			return nil
		})
	}
	return starting.Wait()
}

// findPeers replaces the servers in missing by the peers that cannot be measured.
func (e *environment) findPeers(o *options) {
	servers := e.missing
	e.missing = map[string]string{}
	for _, p := range o.peers {
		reason, missing := servers[p.server]
		if !missing && p.program != nil {
			command, err := p.program(e.dir)
			if err != nil {
				reason, missing = err.Error(), true
			}
			e.programs[p.name] = command
		}
		if missing {
			e.missing[p.name] = p.name + " is left out: " + reason
			fmt.Fprintln(e.progress, e.missing[p.name])
		}
	}
}

// command returns the command of a worker of the peer: a program, or this binary.
func (e *environment) command(p peer) *exec.Cmd {
	addr := e.addrs[e.serverOf(p)]
	if e.route.roundTrip > 0 {
		addr = e.networks[e.route.roundTrip]
	}
	if p.program != nil {
		return e.programs[p.name](addr)
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, workerCommand, p.name, addr)
}

// serverOf returns the name of what serves the peer.
func (e *environment) serverOf(p peer) string {
	if e.route.ensemble && p.server == zooKeeper.name {
		return ensembleName
	}
	return p.server
}

// newPath returns a path that is not in use.
func (e *environment) newPath(name string) string {
	e.paths++
	return fmt.Sprintf("%s/%s-%d", e.root, name, e.paths)
}

// close ends all processes, and removes the folder and the nodes of the run.
func (e *environment) close() {
	var stopping sync.WaitGroup
	for _, processes := range e.workers {
		for _, m := range processes {
			stopping.Go(func() { m.stop(3 * time.Second) })
		}
	}
	stopping.Wait()
	if e.externalZooKeeper {
		if err := e.cleanZooKeeper(); err != nil {
			fmt.Fprintf(e.progress, "%s is left in ZooKeeper: %v\n", e.root, err)
		}
	}
	for _, servers := range e.serving {
		for _, p := range servers {
			p.kill()
		}
	}
	e.remove()
}

func values(m map[string]string) []string {
	var list []string
	for _, v := range m {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}
