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

// site is where a run takes place: its servers, its workers, its folder.
type site struct {
	dir      string
	remove   func()
	length   time.Duration // of a round
	progress io.Writer
	addrs    map[string]string // of servers
	running  []*process        // servers
	programs map[string]func(addr string) *exec.Cmd
	crews    map[string][]*member
	paths    int // given out so far
	root     string
	foreign  bool // ZooKeeper is not ours
	missing  map[string]string
}

// openSite starts the servers that the peers need, and finds out which peers are installed.
func openSite(ctx context.Context, o *options, progress io.Writer) (*site, error) {
	dir, remove, err := openPlace()
	if err != nil {
		return nil, err
	}
	s := &site{dir: dir, remove: remove, length: o.length, progress: progress, addrs: map[string]string{},
		programs: map[string]func(string) *exec.Cmd{}, crews: map[string][]*member{}, missing: map[string]string{},
		root: fmt.Sprintf("/bench-%d-%d", os.Getpid(), time.Now().Unix())}
	err = s.startServers(ctx, o)
	s.findPeers(o)
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(s.missing) == len(o.peers):
		err = fmt.Errorf("nothing to measure: %s", strings.Join(values(s.missing), "; "))
	case s.foreign:
		err = s.reachZooKeeper(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) reachZooKeeper(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conn, err := dialZooKeeper(ctx, s.addrs["zookeeper"])
	if err != nil {
		s.foreign = false // nothing to clean there
		return fmt.Errorf("-zk: %w", err)
	}
	conn.Close()
	return nil
}

// startServers notes which ones are missing. That one does not start is an error.
func (s *site) startServers(ctx context.Context, o *options) error {
	var mu sync.Mutex
	var starting errgroup.Group
	for _, srv := range servers {
		if !slices.ContainsFunc(o.peers, func(p peer) bool { return p.server == srv.name }) {
			continue
		}
		if srv.name == "zookeeper" && o.zk != "" {
			s.addrs[srv.name], s.foreign = o.zk, true
			continue
		}
		starting.Go(func() error {
			p, addr, err := (*process)(nil), "", srv.find()
			if err == nil {
				p, addr, err = srv.start(ctx, s.dir)
			}
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errNotInstalled) {
				s.missing[srv.name] = err.Error()
				return nil
			}
			if err != nil {
				return err
			}
			s.addrs[srv.name] = addr
			s.running = append(s.running, p)
			fmt.Fprintf(s.progress, "%s serves at %s\n", srv.name, addr)
			return nil
		})
	}
	return starting.Wait()
}

// findPeers turns missing, which names servers so far, into the peers that cannot be measured.
func (s *site) findPeers(o *options) {
	servers := s.missing
	s.missing = map[string]string{}
	for _, p := range o.peers {
		why, gone := servers[p.server]
		if !gone && p.program != nil {
			command, err := p.program(s.dir)
			if err != nil {
				why, gone = err.Error(), true
			}
			s.programs[p.name] = command
		}
		if gone {
			s.missing[p.name] = p.name + " is left out: " + why
			fmt.Fprintln(s.progress, s.missing[p.name])
		}
	}
}

// command starts a worker of the peer: a program, or this binary again.
func (s *site) command(p peer) *exec.Cmd {
	addr := s.addrs[p.server]
	if p.program != nil {
		return s.programs[p.name](addr)
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, workerCommand, p.name, addr)
}

// newPath gives a path that nobody has used.
func (s *site) newPath(name string) string {
	s.paths++
	return fmt.Sprintf("%s/%s-%d", s.root, name, s.paths)
}

// close ends all processes and leaves nothing behind.
func (s *site) close() {
	var leaving sync.WaitGroup
	for _, crew := range s.crews {
		for _, m := range crew {
			leaving.Go(func() { m.dismiss(3 * time.Second) })
		}
	}
	leaving.Wait()
	if s.foreign {
		if err := s.cleanZooKeeper(); err != nil {
			fmt.Fprintf(s.progress, "%s is left in ZooKeeper: %v\n", s.root, err)
		}
	}
	for _, p := range s.running {
		p.kill()
	}
	s.remove()
}

func values(m map[string]string) []string {
	var list []string
	for _, v := range m {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}
