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

// member is a worker process as we see it.
type member struct {
	process *process
	input   io.WriteCloser
	answers chan string // closed at the end of its output
	log     string      // the file with its standard error
}

// patience is how long an answer may take beyond the time that was asked for.
const patience = 60 * time.Second

// hire starts a worker and waits until it is ready.
func hire(ctx context.Context, cmd *exec.Cmd, log string) (*member, error) {
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close() // the child has its own
	complaints, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer complaints.Close()
	cmd.Stdout, cmd.Stderr = write, complaints
	p, err := spawn(cmd)
	if err != nil {
		output.Close()
		return nil, err
	}
	m := &member{p, input, make(chan string), log}
	go m.listen(output)
	if _, err := m.answer(ctx, setUpTime); err != nil {
		m.dismiss(0)
		return nil, err
	}
	return m, nil
}

func (m *member) listen(output io.ReadCloser) {
	defer output.Close()
	defer close(m.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20) // latencies are long
	for lines.Scan() {
		m.answers <- lines.Text()
	}
}

// ask sends a message and waits for the answer.
func (m *member) ask(ctx context.Context, question message, limit time.Duration) (message, error) {
	if _, err := fmt.Fprintln(m.input, question); err != nil {
		return message{}, m.failed(err)
	}
	return m.answer(ctx, limit)
}

func (m *member) answer(ctx context.Context, limit time.Duration) (message, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case line, ok := <-m.answers:
		if !ok {
			return message{}, m.failed(errors.New("the worker has ended"))
		}
		return parseMessage(line)
	case <-timeout.C:
		return message{}, m.failed(fmt.Errorf("the worker gave no answer in %v", limit))
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

// failed adds what the worker complained of.
func (m *member) failed(err error) error {
	log, _ := os.ReadFile(m.log)
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-5):], " / "))
}

// dismiss ends the worker, which has so long to do it by itself.
func (m *member) dismiss(patience time.Duration) {
	m.input.Close()
	go func() {
		for range m.answers { // a late answer must not keep it from ending
		}
	}()
	m.process.waitOrKill(patience)
}

// crew gives n workers of the peer. Those that are there already are used again.
func (s *site) crew(ctx context.Context, p peer, n int) ([]*member, error) {
	old := len(s.crews[p.name])
	fresh := make([]*member, max(n-old, 0))
	var hiring errgroup.Group
	for i := range fresh {
		hiring.Go(func() (err error) {
			fresh[i], err = hire(ctx, s.command(p), filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", p.name, old+i)))
			return err
		})
	}
	err := hiring.Wait()
	for _, m := range fresh {
		if m != nil {
			s.crews[p.name] = append(s.crews[p.name], m)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if p.program != nil && len(fresh) > 0 {
		if err := s.warmUp(ctx, p, fresh); err != nil {
			return nil, err
		}
	}
	return s.crews[p.name][:n], nil
}

// warmUp gives a virtual machine the chance to compile what it will run.
func (s *site) warmUp(ctx context.Context, p peer, crew []*member) error {
	_, err := s.work(ctx, crew, load{path: s.newPath(p.name), clients: 16, locks: 16}, 0, min(s.length, 2*time.Second))
	return err
}

// fire ends the workers of a peer, whatever they do.
func (s *site) fire(p peer) {
	for _, m := range s.crews[p.name] {
		m.dismiss(0)
	}
	delete(s.crews, p.name)
}

// each does something with all members at the same time, and gives the first error.
func each(crew []*member, f func(i int, m *member) error) error {
	var all errgroup.Group
	for i, m := range crew {
		all.Go(func() error { return f(i, m) })
	}
	return all.Wait()
}

// work has the crew run a load: first a warm-up, then a window of the length. Several processes are told apart by
// their number, and share the gates.
func (s *site) work(ctx context.Context, crew []*member, l load, warmUp, length time.Duration) (tally, error) {
	if len(crew) > 1 {
		l.gates = filepath.Join(s.dir, "gates"+strings.ReplaceAll(l.path, "/", "-"))
		if err := makeGates(l.gates, l.locks); err != nil {
			return tally{}, err
		}
	}
	err := each(crew, func(i int, m *member) error {
		mine := l
		mine.process = i
		_, err := m.ask(ctx, mine.message(), setUpTime)
		return err
	})
	if err != nil {
		return tally{}, err
	}
	from := now() + int64(warmUp)
	question := message{"run", map[string]string{"from": fmt.Sprint(from), "until": fmt.Sprint(from + int64(length)),
		"settle": fmt.Sprint(btoi(len(crew) == 1))}} // several have one window
	tallies := make([]tally, len(crew))
	err = each(crew, func(i int, m *member) error {
		answer, err := m.ask(ctx, question, warmUp+length+patience)
		if err == nil {
			tallies[i], err = parseTally(answer)
		}
		return err
	})
	var sum tally
	for _, t := range tallies {
		sum.merge(t)
	}
	return sum, err
}
