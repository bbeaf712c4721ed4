package failures

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// resourceServer is a resource beside ZooKeeper, with a number for each lock. It records the
// history of the processes and their tokens. Processes send it lines over TCP:
//
//	call, begin     the process is about to lock, and sends its process id; it is about to unlock
//	lock, unlock    the process has locked; it has unlocked
//	lost            the process has lost a grant
//	believe         the process believed in the grant at the time that it sends, of the clock of all
//	read            presents the token, and returns the number
//	write           presents the token
//	update          sets the number to the one that the process sends, plus one
//
// The server refuses a token that is smaller than an earlier one.
type resourceServer struct {
	listener net.Listener
	serving  sync.WaitGroup
	begun    time.Time

	mu      sync.Mutex
	open    map[net.Conn]*clientRecord
	numbers map[string]*guardedNumber
	grants  map[int64]int // by process id
}

// guardedNumber is the number of one lock, and the history of its use.
type guardedNumber struct {
	resource
	number int64
	ops    []porcupine.Operation
	lost   map[actors.Token]bool // tokens of grants whose release the processes have not reported

	beliefs map[actors.Token]*belief
}

// belief is the time in which a process certainly believed in a grant: from the first to the last
// instant at which it did. A process that pauses reports no instant that it did not check.
type belief struct{ first, last int64 }

func newResourceServer(t testing.TB) *resourceServer {
	t.Helper()
	return newResourceServerAt(t, "tcp", "127.0.0.1:0")
}

func newResourceServerAt(t testing.TB, network, address string) *resourceServer {
	t.Helper()
	l, err := net.Listen(network, address)
	locktest.Must(t, err)
	d := &resourceServer{listener: l, begun: time.Now(), open: map[net.Conn]*clientRecord{}, numbers: map[string]*guardedNumber{}, grants: map[int64]int{}}
	d.serving.Go(func() {
		for client := 0; ; client++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			v := &clientRecord{client: client}
			d.open[conn] = v
			d.mu.Unlock()
			d.serving.Go(func() { d.serve(conn, v) })
		}
	})
	t.Cleanup(d.close)
	return d
}

func (d *resourceServer) addr() string { return d.listener.Addr().String() }

// close closes the server and its connections.
func (d *resourceServer) close() {
	d.listener.Close()
	d.mu.Lock()
	for conn := range d.open {
		conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
}

// numberOf needs d.mu.
func (d *resourceServer) numberOf(path string) *guardedNumber {
	if d.numbers[path] == nil {
		d.numbers[path] = &guardedNumber{lost: map[actors.Token]bool{}, beliefs: map[actors.Token]*belief{}}
	}
	return d.numbers[path]
}

// clientRecord is what a resource server knows of one connection of a process.
type clientRecord struct {
	client int
	pid    int64
	since  int64 // of call or begin
	path   string
	holds  actors.Token // zero if the process holds no lock
}

func (d *resourceServer) serve(conn net.Conn, v *clientRecord) {
	for in := bufio.NewScanner(conn); in.Scan(); {
		var kind, path string
		var token actors.Token
		var number int64
		if _, err := fmt.Sscan(in.Text(), &kind, &path, &token.Czxid, &token.Step, &number); err != nil {
			break
		}
		number, ok := d.handle(v, kind, path, token, number)
		fmt.Fprintln(conn, ok, number)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	conn.Close()
	delete(d.open, conn)
	if v.holds != (actors.Token{}) {
		d.numberOf(v.path).lost[v.holds] = true
	}
}

// handle handles one line.
func (d *resourceServer) handle(v *clientRecord, kind, path string, token actors.Token, number int64) (int64, bool) {
	arrived := int64(time.Since(d.begun))
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.numberOf(path)
	in, out := operation{kind: kind, token: token, number: number}, outcome{accepted: true}
	switch kind {
	case "call":
		v.since, v.pid = arrived, number
		return 0, true
	case "begin":
		v.since = arrived
		return 0, true
	case "lock":
		arrived, v.path, v.holds = v.since, path, token
		d.grants[v.pid]++
	case "unlock":
		arrived, v.holds = v.since, actors.Token{}
	case "lost":
		g.lost[token], v.holds = true, actors.Token{}
		return 0, true
	case "believe":
		if b := g.beliefs[token]; b != nil {
			b.first, b.last = min(b.first, number), max(b.last, number)
		} else {
			g.beliefs[token] = &belief{number, number}
		}
		return 0, true
	default:
		out.accepted = g.write(token)
		if out.accepted && kind == "update" {
			g.number = number + 1
		}
		out.number = g.number
	}
	g.ops = append(g.ops, porcupine.Operation{ClientId: v.client, Input: in, Output: out, Call: arrived, Return: int64(time.Since(d.begun))})
	return out.number, out.accepted
}

// holders returns the ids of the processes that have reported a lock and not its end.
func (d *resourceServer) holders() (pids []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.open {
		if v.holds != (actors.Token{}) {
			pids = append(pids, int(v.pid))
		}
	}
	return pids
}

// granted returns how many grants each process has had, by process id.
func (d *resourceServer) granted() map[int64]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.grants)
}

// check checks that no two processes believed in one lock at a time, and has porcupine check the
// history of each lock. If clean is true, no grant may have been lost and no request refused: the
// locks must have excluded without tokens.
func (d *resourceServer) check(t testing.TB, clean bool) {
	t.Helper()
	d.close() // and so it has handled all lines
	updates := int64(0)
	for path, g := range d.numbers {
		g.check(t, path, clean)
		updates += g.number
	}
	if updates == 0 {
		t.Error("no process has done anything")
	}
}

func (g *guardedNumber) check(t testing.TB, path string, clean bool) {
	t.Helper()
	refused, updates := 0, int64(0)
	for _, o := range g.ops {
		in, out := o.Input.(operation), o.Output.(outcome)
		switch {
		case !out.accepted:
			refused++
		case in.kind == "update":
			updates++
		}
	}
	t.Logf("%s: %d operations, %d updates, %d grants lost, %d requests refused", path, len(g.ops), updates, len(g.lost), refused)
	if clean && len(g.lost)+refused > 0 {
		t.Errorf("%s: %d grants were lost, %d requests refused, though no process was late", path, len(g.lost), refused)
	}
	g.checkBeliefs(t, path)
	if updates != g.number {
		t.Errorf("%s: %d updates have made %d: some were lost", path, updates, g.number)
	}
	ops := slices.DeleteFunc(g.ops, func(o porcupine.Operation) bool {
		in := o.Input.(operation)
		return in.kind == "unlock" && g.lost[in.token]
	})
	if result := porcupine.CheckOperationsTimeout(fenced(g.lost), ops, 20*time.Second); result != porcupine.Ok {
		t.Errorf("%s: the history of %d operations is not that of a lock: %v", path, len(ops), result)
	}
}

// checkBeliefs checks that each belief ends before the next one begins, in the order of the tokens.
func (g *guardedNumber) checkBeliefs(t testing.TB, path string) {
	t.Helper()
	inOrder := slices.SortedFunc(maps.Keys(g.beliefs), actors.Token.Compare)
	for i := 1; i < len(inOrder); i++ {
		before, after := inOrder[i-1], inOrder[i]
		if overlap := g.beliefs[before].last - g.beliefs[after].first; overlap >= 0 {
			t.Errorf("%s: the holder by %v believed until %v after the next one, by %v, began to", path, before, time.Duration(overlap), after)
		}
	}
}

// resourceClient is a connection to a resource server.
type resourceClient struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Scanner
}

func connectResources(resources string) (*resourceClient, error) {
	network := "tcp"
	if strings.HasPrefix(resources, "/") {
		network = "unix"
	}
	conn, err := net.Dial(network, resources)
	if err != nil {
		return nil, err
	}
	return &resourceClient{conn: conn, in: bufio.NewScanner(conn)}, nil
}

// call sends one line and waits for the answer.
func (c *resourceClient) call(kind, path string, token actors.Token, number int64) (result int64, accepted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.conn, kind, path, token.Czxid, token.Step, number)
	if c.in.Scan() {
		fmt.Sscan(c.in.Text(), &accepted, &result)
	}
	return result, accepted
}

// use reads and updates the number under a grant, and reports when the process believes in it.
func (c *resourceClient) use(path string, token actors.Token, believes func() bool) {
	c.believe(path, token, believes)
	for range rand.N(4) {
		if number, ok := c.call("read", path, token, 0); ok {
			<-time.After(rand.N(10 * time.Millisecond))
			c.call("update", path, token, number)
		}
		c.believe(path, token, believes)
	}
}

// believe reports that the process believes in a grant, if it does. The time is read before: the
// process may be paused at any point.
func (c *resourceClient) believe(path string, token actors.Token, believes func() bool) {
	if at := time.Now().UnixNano(); believes() {
		c.call("believe", path, token, at)
	}
}
