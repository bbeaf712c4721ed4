//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Four consumers, each behind a proxy of its own, are killed, paused, and cut off from ZooKeeper, one after
// the other and several at a time. The table finds no message whose effect came twice or not at all. In the
// end all consumers lead shards.
func TestChaos(t *testing.T) {
	zktest.OneRunInAlways(t, 40) // it takes half a minute
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		const shards = 16
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		table, err := serveTable(shards)
		if err != nil {
			t.Fatal(err)
		}
		defer table.close()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c := &chaos{T: t, ctx: ctx, random: rand.New(rand.NewPCG(seed, 0)), proxies: map[string]*zktest.TCPProxy{}, processes: map[string]*consumerProcess{},
			consumer: consumer{session: 4 * time.Second, path: s.Path(t), shards: shards, table: table.addr()}}
		for _, name := range names {
			c.proxies[name] = zktest.Proxy(t, s.Addr())
			c.start(name)
		}
		defer c.end()
		locks, err := actors.Connect(ctx, s.Addr(), actors.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		observed := locks.Partitions(c.path, shards).Observe(ctx)
		c.settle(observed)
		c.stopTwo()
		for range 12 {
			c.disturb()
		}
		c.settle(observed)
		for name, p := range c.processes {
			if err := p.signal(syscall.SIGTERM); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			p.cmd.Wait()
		}
		messages, err := table.check()
		t.Logf("%d messages, %d refused writes", messages, table.refused)
		if err != nil || messages < shards {
			t.Errorf("%d messages: %v", messages, err)
		}
	})
}

var names = []string{"ann", "bob", "cat", "dan"}

// chaos has the consumers of TestChaos.
type chaos struct {
	*testing.T
	consumer
	ctx       context.Context
	random    *rand.Rand
	proxies   map[string]*zktest.TCPProxy
	processes map[string]*consumerProcess
}

func (c *chaos) start(name string) {
	each := c.consumer
	each.name, each.servers = name, c.proxies[name].Addr()
	p, err := start(c.ctx, each)
	if err != nil {
		c.Fatal(err)
	}
	c.processes[name] = p
}

func (c *chaos) end() {
	for _, p := range c.processes {
		p.kill()
	}
}

// stopTwo has two consumers stand still at one time, for longer than their sessions last.
func (c *chaos) stopTwo() {
	for _, i := range c.random.Perm(len(names))[:2] {
		p := c.processes[names[i]]
		p.signal(syscall.SIGSTOP)
		defer p.signal(syscall.SIGCONT)
	}
	time.Sleep(5500 * time.Millisecond)
}

// disturb has a consumer or two meet a fault, for less or more than the session timeout.
func (c *chaos) disturb() {
	for _, i := range c.random.Perm(len(names))[:1+c.random.IntN(2)] {
		name := names[i]
		p, proxy := c.processes[name], c.proxies[name]
		var undo func()
		switch c.random.IntN(4) {
		case 0:
			p.kill()
			undo = func() { c.start(name) }
		case 1:
			p.signal(syscall.SIGSTOP)
			undo = func() { p.signal(syscall.SIGCONT) }
		case 2:
			proxy.BlackHole(true)
			undo = func() { proxy.BlackHole(false) }
		case 3:
			proxy.Refuse(true)
			proxy.Cut()
			undo = func() { proxy.Refuse(false) }
		}
		defer undo()
	}
	time.Sleep([]time.Duration{200 * time.Millisecond, time.Second, 5500 * time.Millisecond}[c.random.IntN(3)])
}

// settle waits until all consumers lead all shards.
func (c *chaos) settle(observed <-chan actors.PartitionGroup) {
	c.Helper()
	var last actors.PartitionGroup
	for !isSettled(last, names) {
		select {
		case last = <-observed:
		case <-c.ctx.Done():
			var all []string
			for _, m := range last.Members {
				all = append(all, fmt.Sprintf("%s leads %v, waits for %v", m.Data, m.Leads, m.Waits))
			}
			slices.Sort(all)
			c.Fatalf("the shards have not settled: %s; %s; %v", row(last), strings.Join(all, "; "), last.Err)
		}
	}
}
