package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// ensembleSize is the number of servers in the ensemble.
const ensembleSize = 3

// ensembleName is the ensemble's name in environment.
const ensembleName = "ensemble"

// startEnsemble starts the servers of an ensemble, waits until they serve, and warms them.
func (e *environment) startEnsemble(ctx context.Context) error {
	dir, err := os.MkdirTemp(e.dir, ensembleName)
	if err != nil {
		return err
	}
	config := []string{"initLimit=10", "syncLimit=5"}
	for i := range ensembleSize {
		config = append(config, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, freePort(), freePort()))
	}
	members := make([]*childProcess, ensembleSize)
	addrs := make([]string, ensembleSize)
	var starting errgroup.Group
	for i := range ensembleSize {
		starting.Go(func() (err error) {
			member := zooKeeper
			member.command = func(dir string, port int) (*exec.Cmd, error) {
				if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(i+1)), 0o644); err != nil {
					return nil, err
				}
				return zooKeeperCommand(dir, port, config...)
			}
			name := filepath.Join(dir, strconv.Itoa(i+1))
			members[i], addrs[i], err = member.try(ctx, name, name+".log")
			return err
		})
	}
	err = starting.Wait()
	for _, m := range members {
		if m != nil {
			e.serving[ensembleName] = append(e.serving[ensembleName], m)
		}
	}
	if err != nil {
		e.stopEnsemble()
		return err
	}
	e.addrs[ensembleName] = strings.Join(addrs, ",")
	fmt.Fprintf(e.progress, "an ensemble serves at %s\n", e.addrs[ensembleName])
	return e.warmServer(ctx, ensembleName, min(ensembleSize*40*e.length, 60*time.Second))
}

func (e *environment) stopEnsemble() {
	for _, m := range e.serving[ensembleName] {
		m.kill()
	}
	delete(e.serving, ensembleName)
}

// onEnsemble returns the scenario on an ensemble.
func onEnsemble(s scenario) scenario {
	alone := s.fits
	s.about = fmt.Sprintf("As %s, on an ensemble of %d servers on this machine. Each session is at any of them.", s.name, ensembleSize)
	s.name = ensembleName + "-" + s.name
	s.route.ensemble = true
	s.brief = false
	s.fits = func(p peer) bool { return p.reference && alone(p) }
	return s
}
