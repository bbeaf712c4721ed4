//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// measurement is one fail-over.
type measurement struct {
	session time.Duration
	fault   string
	took    time.Duration // until the next leader led
	noticed time.Duration // until the old leader reported the end of its term; 0 if it did not before the next leader
}

// measure injects each fault into a leader, once in each round, at a random moment
// between two pings of the leader. It prints each fail-over, and then a table.
func measure(ctx context.Context, servers, sessions string, rounds int, out io.Writer) error {
	if servers == "" {
		return errors.New("-failover: give the servers, -zk: the embedded server is none to measure")
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds %d: it must be positive", rounds)
	}
	var all []measurement
	var timeouts []time.Duration
	for _, text := range strings.Split(sessions, ",") {
		session, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("-sessions %s: %w", sessions, err)
		}
		timeouts = append(timeouts, session)
		for range rounds {
			round, err := measureRound(ctx, servers, session)
			if err != nil {
				return err
			}
			for _, m := range round {
				fmt.Fprintln(out, m)
			}
			all = append(all, round...)
		}
	}
	fmt.Fprintf(out, "\n| session | %s | the old leader, cut off, stops after |\n|--:|%s--:|\n", strings.Join(faultNames, " | "), strings.Repeat("--:|", len(faults)))
	for _, session := range timeouts {
		cells := []string{session.String()}
		for _, name := range faultNames {
			cells = append(cells, spread(all, session, name, func(m measurement) time.Duration { return m.took }))
		}
		cells = append(cells, spread(all, session, "cut", func(m measurement) time.Duration { return m.noticed }))
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	return nil
}

// faultNames are the names of the faults in tables.
var faultNames = []string{"SIGTERM", "kill -9", "freeze", "cut"}

// String returns the measurement as a line.
func (m measurement) String() string {
	line := fmt.Sprintf("session %v, %s: the next leader after %.3f s", m.session, m.fault, m.took.Seconds())
	if m.noticed > 0 {
		line += fmt.Sprintf(", the old one's term over after %.3f s", m.noticed.Seconds())
	}
	return line
}

// spread returns the median, the minimum and the maximum of a column.
func spread(all []measurement, session time.Duration, name string, of func(measurement) time.Duration) string {
	var took []time.Duration
	for _, m := range all {
		if m.session == session && m.fault == name && of(m) > 0 {
			took = append(took, of(m))
		}
	}
	if len(took) == 0 {
		return ""
	}
	slices.Sort(took)
	return fmt.Sprintf("%.2f s (%.2f to %.2f)", took[len(took)/2].Seconds(), took[0].Seconds(), took[len(took)-1].Seconds())
}

// measureRound measures all faults at one time, in an election for each.
func measureRound(ctx context.Context, servers string, session time.Duration) ([]measurement, error) {
	var g errgroup.Group
	var mu sync.Mutex
	var round []measurement
	for i, f := range faults {
		g.Go(func() error {
			m, err := measureOne(ctx, servers, session, f)
			m.fault = faultNames[i]
			mu.Lock()
			defer mu.Unlock()
			round = append(round, m)
			return err
		})
	}
	return round, g.Wait()
}

func measureOne(ctx context.Context, servers string, session time.Duration, f fault) (m measurement, err error) {
	m.session = session
	ctx, cancel := context.WithTimeout(ctx, 3*session+time.Minute)
	defer cancel()
	e, err := open(ctx, servers, session)
	if err != nil {
		return m, err
	}
	defer e.close()
	for _, id := range []string{"one", "two"} {
		if err := e.start(ctx, id); err != nil {
			return m, err
		}
	}
	leader, err := e.nextLeader(ctx)
	if err != nil {
		return m, err
	}
	select {
	case <-time.After(rand.N(session / 3)): // between pings
	case <-ctx.Done():
		return m, context.Cause(ctx)
	}
	start := time.Now()
	took, next, err := e.failOver(ctx, leader, f)
	if err != nil {
		return m, err
	}
	if next == leader || next.token.Compare(leader.token) <= 0 {
		return m, fmt.Errorf("%s leads after %s", next.id, leader.id)
	}
	m.took = took
	select {
	case at := <-leader.over:
		m.noticed = at.Sub(start)
	default:
	}
	return m, nil
}
