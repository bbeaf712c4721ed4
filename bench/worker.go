package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// workerCommand is the first argument of this binary as a worker: worker PEER ADDR.
const workerCommand = "worker"

// setUpTime is the time limit for each preparation of a peer or server.
const setUpTime = 30 * time.Second

// worker is the worker of a Go peer: it answers the requests of protocol.go.
type worker struct {
	peer   peer
	addr   string
	driver driver
	loaded prepared // nil: nothing
}

// serveWorker answers requests until the input ends.
func serveWorker(name, addr string, in io.Reader, out io.Writer) (code int) {
	p, ok := findPeer(name)
	if !ok || p.open == nil {
		fmt.Fprintf(os.Stderr, "worker: unknown peer %q\n", name)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	driver, err := p.open(ctx, addr)
	cancel()
	if err != nil {
		fmt.Fprintln(out, "error", oneLine(err))
		return exitUnavailable
	}
	defer driver.close()
	fmt.Fprintln(out, "ready")
	w := &worker{peer: p, addr: addr, driver: driver}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer, err := w.answer(lines.Text())
		if err != nil {
			fmt.Fprintln(out, "error", oneLine(err))
			continue
		}
		fmt.Fprintln(out, answer)
	}
	return 0
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " / ") }

func (w *worker) answer(line string) (message, error) {
	m, err := parseMessage(line)
	if err != nil {
		return m, err
	}
	switch m.verb {
	case "prepare":
		return message{verb: "ready"}, w.prepare(m)
	case "run":
		return w.run(m)
	case "special":
		return w.special(m)
	default:
		return m, fmt.Errorf("unknown verb %q: accepted are prepare, run and special", m.verb)
	}
}

func (w *worker) prepare(m message) error {
	l, err := parseLoad(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	w.unload()
	var ready prepared
	if bulk, ok := w.driver.(bulkDriver); ok {
		ready, err = bulk.prepare(ctx, l)
	} else {
		ready, err = l.prepare(ctx, w.driver)
	}
	if err == nil {
		w.loaded = ready
	}
	return err
}

func (w *worker) unload() {
	if w.loaded != nil {
		w.loaded.free()
	}
	w.loaded = nil
}

func (w *worker) run(m message) (message, error) {
	from, err := m.number("from")
	if err != nil {
		return m, err
	}
	until, err := m.number("until")
	if err != nil {
		return m, err
	}
	if w.loaded == nil {
		return m, fmt.Errorf("run: prepare must come first")
	}
	t, err := w.loaded.run(from, until, m.args["await_turns"] == "1")
	w.unload()
	return t.message(), err
}

// specials are measurements of this library only, by name. Each returns numbers.
var specials = map[string]func(w *worker, m message) (map[string]float64, error){}

func (w *worker) special(m message) (message, error) {
	f := specials[m.args["name"]]
	if f == nil {
		return m, fmt.Errorf("special: unknown name %q", m.args["name"])
	}
	numbers, err := f(w, m)
	answer := message{"result", map[string]string{}}
	for key, n := range numbers {
		answer.args[key] = fmt.Sprint(n)
	}
	return answer, err
}
