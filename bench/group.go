package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measuredGroup is the group of one round.
type measuredGroup struct {
	*trial
	spec    groupSpec // without number
	quiet   time.Duration
	dir     string
	store   *effectStore
	free    []func()
	members []*groupProcess // all that have been, by number - 1
	extra   map[string]float64
}

// groupProcess is a process that is, or was, a member.
type groupProcess struct {
	number  int
	process *workerProcess
	terms   []termRecord
	until   int64 // at which its terms have ended, as it was killed; lasting: none
}

func (t *trial) newGroup(count int, quiet time.Duration) (*measuredGroup, error) {
	dir, err := os.MkdirTemp(t.dir, "group")
	if err != nil {
		return nil, err
	}
	g := &measuredGroup{trial: t, quiet: quiet, dir: dir, extra: map[string]float64{},
		spec: groupSpec{addr: t.addrs[t.peer.server], path: t.newPath(t.peer.name), count: count, timeout: groupTimeout}}
	store, free, err := openStore(g.storeFile(), count)
	if err != nil {
		return nil, err
	}
	g.store, g.free = store, append(g.free, free)
	return g, nil
}

func (g *measuredGroup) storeFile() string { return filepath.Join(g.dir, "store") }

func (g *measuredGroup) close() {
	for _, m := range g.members {
		m.process.stop(0)
	}
	for _, free := range g.free {
		free()
	}
	_ = os.RemoveAll(g.dir)
}

// start starts the process of a member, which is no member yet.
func (g *measuredGroup) start(ctx context.Context, addr string) (*groupProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &groupProcess{number: len(g.members) + 1, until: lasting}
	terms, free, err := mapFile[termRecord](g.termsFile(m), maxTerms)
	if err != nil {
		return nil, err
	}
	m.terms, g.free = terms, append(g.free, free)
	m.process, err = startWorker(ctx, exec.Command(self, memberCommand, g.peer.name, addr), filepath.Join(g.dir, fmt.Sprintf("%d.log", m.number)))
	if err == nil {
		g.members = append(g.members, m)
	}
	return m, err
}

func (g *measuredGroup) termsFile(m *groupProcess) string {
	return filepath.Join(g.dir, fmt.Sprintf("terms-%d", m.number))
}

func (g *measuredGroup) join(ctx context.Context, m *groupProcess) error {
	s := g.spec
	s.number = m.number
	_, err := m.process.ask(ctx, s.message(g.termsFile(m), g.storeFile()), answerLimit)
	return err
}

// come has a new member join, and waits until the group has settled.
func (g *measuredGroup) come(ctx context.Context, addr string) (*groupProcess, error) {
	m, err := g.start(ctx, addr)
	if err != nil {
		return nil, err
	}
	_, err = g.step(ctx, func() error { return g.join(ctx, m) }, func(load map[int]int) bool { return load[m.number] > 0 })
	return m, err
}

func (g *measuredGroup) kill(m *groupProcess) {
	m.process.process.kill()
	m.until = now()
}

// terms returns all terms so far.
func (g *measuredGroup) terms() (terms []term) {
	for _, m := range g.members {
		terms = append(terms, termsOf(m.number, m.terms, m.until)...)
	}
	return terms
}

// groupStep is what a change of the members did.
type groupStep struct {
	settled  time.Duration // from the beginning to the last change
	moved    moves
	load     float64 // of the member that leads most, in the ratio to the mean
	requests float64 // to the server; 0 if it does not tell
}

// step makes a change of the members, and waits until it has shown, each partition has a leader and nothing changes any more.
func (g *measuredGroup) step(ctx context.Context, change func() error, shown func(load map[int]int) bool) (s groupStep, err error) {
	requests, _ := g.requests()
	begun := now()
	if err := change(); err != nil {
		return s, err
	}
	terms, at, err := g.settle(ctx, begun, shown)
	if err != nil {
		return s, err
	}
	if after, err := g.requests(); err == nil {
		s.requests = after - requests
	}
	leaders := leadersAt(terms, g.spec.count, at)
	s.settled = time.Duration(max(lastChange(terms)-begun, 0))
	s.moved = movesBetween(terms, g.spec.count, begun, at)
	s.load = loadRatio(leaders)
	return s, nil
}

// settle returns the terms, and the instant at which they were read.
func (g *measuredGroup) settle(ctx context.Context, begun int64, shown func(load map[int]int) bool) (terms []term, at int64, err error) {
	limit := time.Now().Add(settleLimit)
	for {
		at, terms = now(), g.terms()
		leaders := leadersAt(terms, g.spec.count, at)
		without := 0
		for _, list := range leaders {
			without += btoi(len(list) == 0)
		}
		switch {
		case without == 0 && shown(loads(leaders)) && at-max(lastChange(terms), begun) >= int64(g.quiet):
			return terms, at, nil
		case time.Now().After(limit):
			return nil, 0, fmt.Errorf("after %v %d of %d partitions have no leader; the members lead %v", settleLimit, without, g.spec.count, loads(leaders))
		}
		for _, m := range g.members {
			if m.until == lasting && m.process.process.ended() {
				return nil, 0, m.process.failed(fmt.Errorf("member %d has ended", m.number))
			}
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, 0, err
		}
	}
}

// requests returns the number of requests that the server of the group has received so far.
func (g *measuredGroup) requests() (float64, error) {
	if g.peer.server == etcdServer.name {
		reply, err := exchange(g.spec.addr, "GET /metrics HTTP/1.0\r\n\r\n")
		return sumOf(reply, " ", `grpc_server_msg_received_total{`, `grpc_service="etcdserverpb.`), err
	}
	reply, err := fourLetter(g.spec.addr, "mntr")
	return sumOf(reply, "\t", "zk_packets_received"), err
}

// sumOf adds the numbers of the lines that contain all the words. A number follows the last separator of its line.
func sumOf(text, separator string, words ...string) (sum float64) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			continue
		}
		n, _ := strconv.ParseFloat(line[strings.LastIndex(line, separator)+1:], 64)
		sum += n
	}
	return sum
}
