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

// PeerOption changes the configuration of a client of another language.
type PeerOption func(*peerOptions)

type peerOptions struct{ session time.Duration }

// SessionTimeout sets the session timeout; the default is 10 s.
func SessionTimeout(d time.Duration) PeerOption {
	return func(o *peerOptions) { o.session = d }
}

// Peer is a process with one client of another language, which has one session. It ends with the
// test. Several goroutines may call its methods.
type Peer struct {
	t       testing.TB
	process *zktest.Process
	stdin   io.Writer
	stderr  *outputTail
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

// Event is an event that an object of the other process has reported.
type Event struct {
	Kind string // the other library's name for it
	Path string
	Data string
}

var errEnded = errors.New("interop: the process has ended")

// start starts the process, and waits for the session of its client.
func start(t testing.TB, addr string, opts []PeerOption, command func(addr, sessionMillis string) *exec.Cmd) *Peer {
	t.Helper()
	o := peerOptions{session: 10 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	p := &Peer{t: t, stderr: &outputTail{}, pending: map[string]chan answer{}, events: map[string]chan Event{}}
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
		_ = p.process.Thaw() // fails if it has ended
		stdin.Close()        // the client closes its session, so that it leaves nothing on a shared server
		select {
		case <-p.process.Done():
		case <-time.After(zktest.TimeLimit):
			p.process.Kill()
		}
		readers.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", cmd.Path, p.stderr)
		}
	})
	p.must("client", "client", "session")
	return p
}

// SessionID waits until the client has a session, and returns its id.
func (p *Peer) SessionID() int64 {
	p.t.Helper()
	id, err := strconv.ParseInt(p.must("client", "client", "session")[0], 10, 64)
	if err != nil {
		p.t.Fatalf("interop: %v", err)
	}
	return id
}

// States returns a channel of the changes of the connection's state, with the library's names:
// SUSPENDED, LOST and so on.
func (p *Peer) States() <-chan Event { return p.states }

// Kill ends the process as kill -9 does. Its session goes on until it expires.
func (p *Peer) Kill() { p.process.Kill() }

// Freeze suspends the process, as a long pause of its virtual machine would, and returns when the
// process has stopped. It works on Linux only.
func (p *Peer) Freeze() {
	p.t.Helper()
	if err := p.process.Freeze(); err != nil {
		p.t.Fatalf("interop: %v", err)
	}
}

// Thaw resumes a frozen process.
func (p *Peer) Thaw() {
	p.t.Helper()
	if err := p.process.Thaw(); err != nil {
		p.t.Fatalf("interop: %v", err)
	}
}

// ask sends a request, and returns a channel for its answer. The other process has a thread for
// each name, which handles the requests one after the other.
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
	_, _ = io.WriteString(p.stdin, strings.Join(fields, "\t")+"\n") // it fails if the process has ended, and then read answers
	return ch
}

func (p *Peer) call(thread, object, verb string, args ...string) ([]string, error) {
	a := <-p.ask(thread, object, verb, args...)
	return a.values, a.err
}

// must is call, and fails the test after an error.
func (p *Peer) must(thread, object, verb string, args ...string) []string {
	p.t.Helper()
	values, err := p.call(thread, object, verb, args...)
	if err != nil {
		p.t.Fatalf("interop: %s: %v", verb, err)
	}
	return values
}

// object makes an object in the other process, with a thread of its own, and returns the name of
// both.
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

// listen returns a channel for the events of an object.
func (p *Peer) listen(object string) <-chan Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := make(chan Event, 10_000)
	p.events[object] = ch
	return ch
}

// read handles the lines of the process until it has ended.
func (p *Peer) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 2 {
			p.t.Errorf("interop: the process printed %q", line)
			continue
		}
		p.receive(fields[0], fields[1], fields[2:])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, ch := range p.pending {
		ch <- answer{err: errEnded}
	}
	p.pending = nil
}

// receive handles an event, whose number is 0, or an answer.
func (p *Peer) receive(number, what string, values []string) {
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

// outputTail keeps the last 16 KiB that are written to it.
type outputTail struct {
	mu sync.Mutex
	b  []byte
}

func (w *outputTail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, b...)
	w.b = w.b[max(0, len(w.b)-16<<10):]
	return len(b), nil
}

func (w *outputTail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
