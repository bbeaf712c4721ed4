package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

const partitionsName = "partitions"

// groupTimeout is the session timeout or lease of each member in scenario partitions. Less is not granted by a ZooKeeper as by default.
const groupTimeout = 4 * time.Second

var partitions = scenario{
	name: partitionsName,
	about: fmt.Sprintf("Processes share partitions (-partitions), each of which one process leads. Sessions and leases are of %v. Three members join, and the third one leaves. Two "+
		"more join, and one of them is killed. Another one joins. Then one member is stopped (SIGSTOP), and the last one is cut off from its server, both for %v. A group is settled "+
		"when each partition has a leader and nothing has moved for %v: settled_ms is the time from the start of the change to the last move. Every %v a member asks for each partition "+
		"that it leads whether it still leads, as the peer's documentation says. If so, it makes an effect in a store without tokens. doubles are the partitions of which two "+
		"members had a yes at one instant, and twice are the effects that the store took from two members: in_health until the first leave, and then of the member that was stopped and of the "+
		"one that was cut off. violations are all doubles. requests_per_move counts the server's requests by its own counter. disthash's are for the list of members alone, because no "+
		"server has its partitions. The line in the table is for the third Join: moves per second, and the time for which a partition that moved had no leader. -seconds does "+
		"not count: a round takes half a minute.", groupTimeout, groupTimeout+pastTimeout, quietTime, effectPeriod),
	fits:   func(p peer) bool { return p.join != nil },
	costly: true,
	run:    runPartitions,
}

const (
	// quietTime is the time without a change after which a group is settled. It is longer than the
	// second for which protoactor's ZooKeeper provider sleeps at times.
	quietTime = 1200 * time.Millisecond
	// pastTimeout is how long a member is away beyond its timeout: a tick of ZooKeeper, and a second.
	pastTimeout = 3 * time.Second
	// backTime is how long doubles count after a member is back.
	backTime = 2 * time.Second
	// settleLimit is the time limit for a group to settle.
	settleLimit = 2 * time.Minute
)

func runPartitions(ctx context.Context, t *trial) (run, error) {
	g, err := t.newGroup(t.partitions, quietTime)
	if err != nil {
		return run{}, err
	}
	defer g.close()
	third, err := g.comeAndGo(ctx)
	if err == nil {
		err = g.killOne(ctx)
	}
	if err == nil {
		err = g.diverge(ctx)
	}
	if err != nil {
		return run{}, err
	}
	r := run{OpsPerSec: float64(third.moved.count) / third.settled.Seconds(), Extra: g.extra,
		Violations: doubles(g.terms(), g.spec.count, 0, 0)}
	if n := len(third.moved.without); n > 0 {
		r.P50, r.P99 = micros(third.moved.without[n/2]), micros(third.moved.without[n*99/100])
	}
	return r, nil
}

// comeAndGo has three members join, and the third one leave. It returns what happened at the third Join.
func (g *measuredGroup) comeAndGo(ctx context.Context) (third groupStep, err error) {
	for n := 1; n <= 3; n++ {
		m, err := g.start(ctx, g.spec.addr)
		if err != nil {
			return third, err
		}
		third, err = g.step(ctx, func() error { return g.join(ctx, m) }, func(load map[int]int) bool { return load[n] > 0 })
		if err != nil {
			return third, fmt.Errorf("Join %d: %w", n, err)
		}
		g.extra[fmt.Sprintf("settled_ms_join_%d", n)] = millis(third.settled)
	}
	g.tell("join_3", third)
	g.extra["moved_join_3"] = float64(third.moved.count)
	g.extra["load_join_3"] = third.load
	if third.moved.count > 0 && third.requests > 0 {
		g.extra["requests_per_move_join_3"] = third.requests / float64(third.moved.count)
	}
	leaver := g.members[2]
	left, err := g.step(ctx, func() error {
		_, err := leaver.process.ask(ctx, message{verb: "leave"}, answerLimit)
		return err
	}, func(load map[int]int) bool { return load[leaver.number] == 0 })
	if err != nil {
		return third, fmt.Errorf("leave: %w", err)
	}
	g.extra["settled_ms_leave"] = millis(left.settled)
	g.tell("leave", left)
	g.extra["doubles_in_health"] = float64(doubles(g.terms(), g.spec.count, 0, 0))
	g.extra["twice_in_health"] = float64(g.store.twiceByAll())
	return third, nil
}

// tell adds the times without a leader of a step.
func (g *measuredGroup) tell(name string, s groupStep) {
	if n := len(s.moved.without); n > 0 {
		g.extra["without_leader_ms_p50_"+name] = millis(s.moved.without[n/2])
		g.extra["without_leader_ms_max_"+name] = millis(s.moved.without[n-1])
	}
}

// killOne has two members come, and kills one of them.
func (g *measuredGroup) killOne(ctx context.Context) error {
	victim, err := g.come(ctx, g.spec.addr)
	if err == nil {
		_, err = g.come(ctx, g.spec.addr)
	}
	if err != nil {
		return err
	}
	killed, err := g.step(ctx, func() error {
		g.kill(victim)
		return nil
	}, func(map[int]int) bool { return true })
	if err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	g.extra["settled_ms_kill"] = millis(killed.settled)
	g.tell("kill", killed)
	return nil
}

// diverge stops a member, and cuts another one off from its server, until others lead what they led, and then has both back.
func (g *measuredGroup) diverge(ctx context.Context) error {
	gate, err := openGate(g.spec.addr)
	if err != nil {
		return err
	}
	g.free = append(g.free, gate.close)
	stopped := g.members[len(g.members)-1]
	cut, err := g.come(ctx, gate.addr())
	if err != nil {
		return err
	}
	from := now()
	beforeStopped, beforeCut := g.store.twiceBy(stopped.number), g.store.twiceBy(cut.number)
	gate.cut()
	if err := stopped.process.process.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := sleep(ctx, g.spec.timeout+pastTimeout); err != nil {
		return err
	}
	gate.heal()
	if err := stopped.process.process.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := sleep(ctx, backTime); err != nil {
		return err
	}
	terms := g.terms()
	g.extra["doubles_stopped"] = float64(doubles(terms, g.spec.count, from, stopped.number))
	g.extra["doubles_cut_off"] = float64(doubles(terms, g.spec.count, from, cut.number))
	g.extra["twice_stopped"] = float64(g.store.twiceBy(stopped.number) - beforeStopped)
	g.extra["twice_cut_off"] = float64(g.store.twiceBy(cut.number) - beforeCut)
	return nil
}

func millis(d time.Duration) float64 { return micros(d) / 1000 }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
