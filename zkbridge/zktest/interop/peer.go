package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// PeerOption changes a client of another language.
type PeerOption func(*peerOptions)

type peerOptions struct{ session time.Duration }

// SessionTimeout sets what the client asks the server for; 10 s without it.
func SessionTimeout(d time.Duration) PeerOption {
	return func(o *peerOptions) { o.session = d }
}

// Peer is a process that runs one client of another language, with one session. It ends with the test. Its methods may
// be called from several goroutines.
type Peer struct {
	t       testing.TB
	process *zktest.Process
	stdin   io.Writer
	stderr  *tail
	states  <-chan Event

	mu      sync.Mutex
	last    int
	pending map[string]chan answer
	events  map[string]chan Event
	ended   bool
}

type answer struct {
	values []string
	err    error
}

// Event is something that an object of the other side tells.
type Event struct {
	Kind string // what the other library calls it
	Path string
	Data string
}

var errEnded = errors.New("interop: the process has ended")

// start runs the driver and waits for its session.
func start(t testing.TB, addr string, opts []PeerOption, command func(addr, sessionMillis string) *exec.Cmd) *Peer {
	t.Helper()
	o := peerOptions{session: 10 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	p := &Peer{t: t, stderr: &tail{}, pending: map[string]chan answer{}, events: map[string]chan Event{}}
	p.states = p.listen("client")
	cmd := command(addr, strconv.FormatInt(o.session.Milliseconds(), 10))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("interop: %v", err)
	}
	stdout, lines := io.Pipe()
	p.stdin, cmd.Stdout, cmd.Stderr = stdin, lines, p.stderr
	p.process = zktest.Spawn(t, cmd)
	var readers sync.WaitGroup
	readers.Go(func() { p.read(stdout) })
	readers.Go(func() { <-p.process.Done(); lines.Close() })
	t.Cleanup(func() {
		_ = p.process.Thaw() // fails when it has ended
		stdin.Close()        // it closes its session, so that nothing is left on a server that other tests use
		select {
		case <-p.process.Done():
		case <-time.After(30 * time.Second):
			p.process.Kill()
		}
		readers.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, p.stderr)
		}
	})
	p.must("client", "client", "session")
	return p
}

// SessionID asks the client for the id of its session, and waits until it has one.
func (p *Peer) SessionID() int64 {
	p.t.Helper()
	id, err := strconv.ParseInt(p.must("client", "client", "session")[0], 10, 64)
	if err != nil {
		p.t.Fatalf("interop: %v", err)
	}
	return id
}

// States returns a channel of the changes in the state of the connection, in the library's words: SUSPENDED, LOST and so
// on.
func (p *Peer) States() <-chan Event { return p.states }

// Kill ends the process as kill -9 does. The session lives on until it expires.
func (p *Peer) Kill() { p.process.Kill() }

// Freeze stops the process from running, as a long pause of its virtual machine would, and returns when it stands
// still. It works on Linux only.
func (p *Peer) Freeze() {
	p.t.Helper()
	if err := p.process.Freeze(); err != nil {
		p.t.Fatalf("interop: %v", err)
	}
}

// Thaw lets a frozen process go on.
func (p *Peer) Thaw() {
	p.t.Helper()
	if err := p.process.Thaw(); err != nil {
		p.t.Fatalf("interop: %v", err)
	}
}

// ask sends a request and returns where its answer comes. The thread of the other side that serves it is known by any
// name; it serves its requests in turn.
func (p *Peer) ask(thread, object, verb string, args ...string) <-chan answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	number, ch := strconv.Itoa(p.last), make(chan answer, 1)
	fields := append([]string{number, thread, object, verb}, args...)
	if i := slices.IndexFunc(fields, func(f string) bool { return strings.ContainsAny(f, "\t\r\n") }); i >= 0 {
		ch <- answer{err: fmt.Errorf("interop: %q contains a tab or a line break", fields[i])}
		return ch
	}
	if p.ended {
		ch <- answer{err: errEnded}
		return ch
	}
	p.pending[number] = ch
	_, _ = io.WriteString(p.stdin, strings.Join(fields, "\t")+"\n") // if it fails the process has ended, as read tells
	return ch
}

func (p *Peer) call(thread, object, verb string, args ...string) ([]string, error) {
	a := <-p.ask(thread, object, verb, args...)
	return a.values, a.err
}

// must is a call that fails the test when it fails.
func (p *Peer) must(thread, object, verb string, args ...string) []string {
	p.t.Helper()
	values, err := p.call(thread, object, verb, args...)
	if err != nil {
		p.t.Fatalf("interop: %s: %v", verb, err)
	}
	return values
}

// object makes an object on the other side, with a thread of its own, and returns the name of both.
func (p *Peer) object(kind string, args ...string) string {
	p.t.Helper()
	name := p.name(kind)
	p.must(name, name, kind, args...)
	return name
}

// name returns a name that no object has.
func (p *Peer) name(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return kind + "-" + strconv.Itoa(p.last)
}

// listen returns where the events of an object come.
func (p *Peer) listen(object string) <-chan Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := make(chan Event, 10_000)
	p.events[object] = ch
	return ch
}

// read passes on what the process says until it has ended.
func (p *Peer) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 2 {
			p.t.Errorf("interop: the process says %q", line)
			continue
		}
		p.take(fields[0], fields[1], fields[2:])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, ch := range p.pending {
		ch <- answer{err: errEnded}
	}
	p.pending = nil
}

func (p *Peer) take(number, what string, values []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number == "0" {
		e := append(values, "", "", "")
		select {
		case p.events[what] <- Event{Kind: e[0], Path: e[1], Data: e[2]}:
		default: // no test reads the events of this object
		}
		return
	}
	a := answer{values: values}
	if what == "error" {
		a = answer{err: errors.New(strings.Join(values, " "))}
	}
	p.pending[number] <- a
	delete(p.pending, number)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, b...)
	w.b = w.b[max(0, len(w.b)-16<<10):]
	return len(b), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
