package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// workerProcess is a worker, as bench controls it.
type workerProcess struct {
	process *childProcess
	input   io.WriteCloser
	answers chan string // the lines of its output; closed at the end
	log     string      // name of the file with its standard error
}

// answerLimit is how much longer than the measured time an answer may take.
const answerLimit = 60 * time.Second

// startWorker starts a worker, and waits until it is ready.
func startWorker(ctx context.Context, cmd *exec.Cmd, log string) (*workerProcess, error) {
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close() // the child has a copy
	stderr, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = write, stderr
	p, err := spawn(cmd)
	if err != nil {
		output.Close()
		return nil, err
	}
	m := &workerProcess{p, input, make(chan string), log}
	go m.listen(output)
	if _, err := m.answer(ctx, setUpTime); err != nil {
		m.stop(0)
		return nil, err
	}
	return m, nil
}

func (m *workerProcess) listen(output io.ReadCloser) {
	defer output.Close()
	defer close(m.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20) // latencies are long
	for lines.Scan() {
		m.answers <- lines.Text()
	}
}

// ask sends a message, and waits for the answer.
func (m *workerProcess) ask(ctx context.Context, question message, limit time.Duration) (message, error) {
	if _, err := fmt.Fprintln(m.input, question); err != nil {
		return message{}, m.failed(err)
	}
	return m.answer(ctx, limit)
}

func (m *workerProcess) answer(ctx context.Context, limit time.Duration) (message, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case line, ok := <-m.answers:
		if !ok {
			return message{}, m.failed(errors.New("the worker has ended"))
		}
		return parseMessage(line)
	case <-timeout.C:
		return message{}, m.failed(fmt.Errorf("the worker has not answered in %v", limit))
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

// failed adds the end of the worker's standard error to err.
func (m *workerProcess) failed(err error) error {
	log, _ := os.ReadFile(m.log)
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-5):], " / "))
}

// stop ends the worker: it closes its input, and kills it after the grace.
func (m *workerProcess) stop(grace time.Duration) {
	m.input.Close()
	go func() {
		for range m.answers { // otherwise a late answer would block the worker
		}
	}()
	m.process.waitOrKill(grace)
}

// ensureWorkers returns n workers of the peer. It starts those that do not run yet.
func (e *environment) ensureWorkers(ctx context.Context, p peer, n int) ([]*workerProcess, error) {
	old := len(e.workers[p.name])
	started := make([]*workerProcess, max(n-old, 0))
	var starting errgroup.Group
	starting.SetLimit(8) // 64 at once on two cores would all exceed setUpTime
	for i := range started {
		starting.Go(func() (err error) {
			started[i], err = startWorker(ctx, e.command(p), filepath.Join(e.dir, fmt.Sprintf("%s-%d.log", p.name, old+i)))
			return err
		})
	}
	err := starting.Wait()
	for _, m := range started {
		if m != nil {
			e.workers[p.name] = append(e.workers[p.name], m)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if p.program != nil && len(started) > 0 {
		if err := e.warmUp(ctx, p, started); err != nil {
			return nil, err
		}
	}
	return e.workers[p.name][:n], nil
}

// warmUp runs a load, so that a virtual machine compiles the code.
func (e *environment) warmUp(ctx context.Context, p peer, workers []*workerProcess) error {
	_, err := e.work(ctx, p, workers, load{path: e.newPath(p.name), clients: 16, locks: 16}, 0, min(e.length, 2*time.Second))
	return err
}

// stopWorkers kills the workers of a peer.
func (e *environment) stopWorkers(p peer) {
	for _, m := range e.workers[p.name] {
		m.stop(0)
	}
	delete(e.workers, p.name)
}

// each calls f for all workers at the same time, and returns the first error.
func each(workers []*workerProcess, f func(i int, m *workerProcess) error) error {
	var all errgroup.Group
	for i, m := range workers {
		all.Go(func() error { return f(i, m) })
	}
	return all.Wait()
}

// work runs a load in the workers, first a warm-up and then a window of the length, and returns the sum of their tallies.
// Several workers share the file of sections.
func (e *environment) work(ctx context.Context, p peer, workers []*workerProcess, l load, warmUp, length time.Duration) (tally, error) {
	if len(workers) > 1 {
		l.sections = filepath.Join(e.dir, "sections"+strings.ReplaceAll(l.path, "/", "-"))
		if err := makeSections(l.sections, l.locks); err != nil {
			return tally{}, err
		}
	}
	err := each(workers, func(i int, m *workerProcess) error {
		l := l
		l.process = i
		_, err := m.ask(ctx, l.message(), setUpTime)
		return err
	})
	if err != nil {
		return tally{}, err
	}
	before := e.used(p, workers)
	from := now() + int64(warmUp)
	question := message{"run", map[string]string{"from": fmt.Sprint(from), "until": fmt.Sprint(from + int64(length)),
		"await_turns": fmt.Sprint(btoi(len(workers) == 1))}} // several processes share the window
	tallies := make([]tally, len(workers))
	err = each(workers, func(i int, m *workerProcess) error {
		answer, err := m.ask(ctx, question, warmUp+length+answerLimit)
		if err == nil {
			tallies[i], err = parseTally(answer)
		}
		return err
	})
	sum := tally{used: e.used(p, workers).since(before)}
	for _, t := range tallies {
		sum.merge(t)
	}
	return sum, err
}
