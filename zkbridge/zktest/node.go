package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// serverProcess is one ZooKeeper server: its folder, its port, and its process while it runs.
type serverProcess struct {
	install  install
	interval time.Duration // see ContainerInterval
	heap     int           // see Heap
	flags    []string      // see Property
	dir      string        // holds zoo.cfg, data and log
	port     reservedPort

	// In an ensemble: its ports for the other members, and the proxies between it and them.
	quorum, election reservedPort
	links            []*TCPProxy

	mu   sync.Mutex
	proc *Process // nil while stopped
}

var errPortTaken = errors.New("port taken by another process")

// launch starts n servers in the folder. It tries other ports if another program has one of them:
// reserved ports are reserved only among the processes of these tests.
func launch(inst install, dir string, n int, o serverOptions) (*Server, error) {
	for attempt := 0; ; attempt++ {
		s, err := prepare(inst, filepath.Join(dir, strconv.Itoa(attempt)), n, o)
		if err != nil {
			return nil, err
		}
		if err = s.start(); err == nil {
			return s, nil
		}
		s.close()
		if !errors.Is(err, errPortTaken) || attempt == 3 {
			return nil, err
		}
	}
}

// prepare writes the folders and configurations of n servers.
func prepare(inst install, dir string, n int, o serverOptions) (*Server, error) {
	s := &Server{}
	for i := range n {
		nd := &serverProcess{install: inst, interval: o.interval, heap: o.heap, flags: o.flags, dir: filepath.Join(dir, strconv.Itoa(i+1)), port: reservePort()}
		if n > 1 {
			nd.quorum, nd.election = reservePort(), reservePort()
		}
		s.nodes = append(s.nodes, nd)
	}
	var addrs []string
	for i, nd := range s.nodes {
		var peers []string
		if n > 1 {
			peers = s.peersOf(nd, o)
			s.members = append(s.members, &Server{addr: nd.addr(), nodes: []*serverProcess{nd}})
		}
		if err := nd.write(strconv.Itoa(i+1), config(nd.data(), nd.port.number, peers, o)); err != nil {
			return nil, err
		}
		addrs = append(addrs, nd.addr())
	}
	s.addr = strings.Join(addrs, ",")
	return s, nil
}

// peersOf returns the lines of a member's configuration that name the other members and itself.
func (s *Server) peersOf(member *serverProcess, o serverOptions) (lines []string) {
	for i, nd := range s.nodes {
		quorum, election := nd.quorum.addr(), nd.election.addr()
		if o.links && nd != member {
			q, e := o.proxy(quorum), o.proxy(election)
			quorum, election = q.Addr(), e.Addr()
			member.links, nd.links = append(member.links, q, e), append(nd.links, q, e)
		}
		_, port, _ := net.SplitHostPort(election)
		line := fmt.Sprintf("server.%d=%s:%s", i+1, quorum, port)
		if o.observer && i == len(s.nodes)-1 {
			line += ":observer"
		}
		lines = append(lines, line)
	}
	return lines
}

func (n *serverProcess) write(id, config string) error {
	if err := os.MkdirAll(n.data(), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.data(), "myid"), []byte(id), 0o644); err != nil {
		return err
	}
	return os.WriteFile(n.configFile(), []byte(config), 0o644)
}

// configure adds lines to the configuration. Of two lines with one key the last one counts.
func (n *serverProcess) configure(lines []string) error {
	config, err := os.ReadFile(n.configFile())
	if err != nil {
		return err
	}
	return os.WriteFile(n.configFile(), append(config, strings.Join(lines, "\n")+"\n"...), 0o644)
}

func (n *serverProcess) configFile() string { return filepath.Join(n.dir, "zoo.cfg") }
func (n *serverProcess) data() string       { return filepath.Join(n.dir, "data") }
func (n *serverProcess) logFile() string    { return filepath.Join(n.dir, "log") }
func (n *serverProcess) addr() string       { return n.port.addr() }

// start starts the process unless it runs, and waits until it serves.
func (n *serverProcess) start(timeout time.Duration) error {
	p, err := n.spawn()
	if err != nil {
		return err
	}
	if poll(timeout, p.done, n.serves) {
		return nil
	}
	select {
	case <-p.done:
		if log := n.logTail(); strings.Contains(log, "Address already in use") {
			return fmt.Errorf("%s: %w\n%s", n.addr(), errPortTaken, log)
		}
		return fmt.Errorf("%s ended at its start, %v\n%s", n.addr(), p.state, n.logTail())
	default:
		return fmt.Errorf("%s does not serve after %v\n%s", n.addr(), timeout, n.logTail())
	}
}

func (n *serverProcess) spawn() (*Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil && !n.proc.ended() {
		return n.proc, nil
	}
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := n.install.command(n.configFile(), n.interval, n.heap, n.flags)
	cmd.Stdout, cmd.Stderr = log, log
	n.proc, err = spawn(cmd)
	return n.proc, err
}

// kill ends the process, and returns when it has ended.
func (n *serverProcess) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		n.proc.Kill()
		n.proc = nil
	}
}

// close kills the process for good: other processes may have its ports.
func (n *serverProcess) close() {
	n.kill()
	n.port.release()
	n.quorum.release()
	n.election.release()
}

func (n *serverProcess) freeze() error { return n.signal((*Process).Freeze) }
func (n *serverProcess) thaw() error   { return n.signal((*Process).Thaw) }

func (n *serverProcess) signal(send func(*Process) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return errors.New("it is stopped")
	}
	return send(n.proc)
}

// retryTime is how long a server that starts has for an answer, after which the test asks again:
// ZooKeeper never answers some of the questions that come while it starts.
const retryTime = 5 * time.Second

// serves reports whether the server answers and accepts requests, and not another process on its
// port.
func (n *serverProcess) serves() bool {
	if ok, err := fourLetterWithin(retryTime, n.addr(), "ruok"); err != nil || ok != "imok" {
		return false
	}
	if n.mode() == "" {
		return false
	}
	conf, err := fourLetter(n.addr(), "conf")
	return err == nil && strings.Contains(conf, "dataDir="+n.data())
}

// mode returns standalone, leader, follower or observer, and "" while the server accepts no requests.
func (n *serverProcess) mode() string {
	reply, err := fourLetterWithin(retryTime, n.addr(), "srvr")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(reply, "\nMode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

var watchCount = regexp.MustCompile(`(?m)^zk_watch_count\s+(\d+)`)

// watches returns the number of watches at a server, without those on the generation's node.
func watches(addr string) (int, error) {
	reply, err := fourLetter(addr, "mntr")
	if err != nil {
		return 0, fmt.Errorf("mntr on %s: %w", addr, err)
	}
	m := watchCount.FindStringSubmatch(reply)
	if m == nil {
		return 0, fmt.Errorf("mntr on %s does not count watches: %q", addr, reply)
	}
	total, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	ofGeneration, err := watchesOnPaths(addr, isGeneration)
	return total - ofGeneration, err
}

// watchesOnPaths returns the number of watches at a server on the paths that counts accepts,
// without those on children.
func watchesOnPaths(addr string, counts func(path string) bool) (total int, err error) {
	reply, err := fourLetter(addr, "wchp")
	if err != nil {
		return 0, fmt.Errorf("wchp on %s: %w", addr, err)
	}
	counted := false
	for line := range strings.Lines(reply) { // a path, and then a session in each line that begins with a tab
		if path := strings.TrimSpace(line); !strings.HasPrefix(line, "\t") {
			counted = counts(path)
		} else if counted {
			total++
		}
	}
	return total, nil
}

// logTail returns the end of the server's log.
func (n *serverProcess) logTail() string {
	b, err := os.ReadFile(n.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// fourLetter sends one of ZooKeeper's four-letter commands and returns the answer.
func fourLetter(addr, word string) (string, error) {
	return fourLetterWithin(TimeLimit, addr, word)
}

func fourLetterWithin(limit time.Duration, addr, word string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(conn)
	return string(reply), err
}
