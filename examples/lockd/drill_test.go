//go:build unix

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var wholeDrill = flag.Bool("drill", false, "TestDrill has 200 clients, a real ZooKeeper, which is away for a minute, and lockd's own times: for some four minutes")

// drill has two lock servers, whose clients connect through a proxy each, so that their streams can be
// cut.
type drill struct {
	*testing.T
	*fleet
	zk            *zktest.Server
	authority     *zktest.Authority
	flags         []string
	keys          string // the file of lockd's certificate
	path          string
	servers       [2]*lockd
	proxies       [2]*zktest.TCPProxy
	audits        [2]string
	ended         []*lockd // of servers, before they were started again
	clients       int
	session       time.Duration
	lease         time.Duration // what a client may believe at most
	away          time.Duration // of ZooKeeper
	certificate   time.Duration // until the first certificate ends
	expectedTotal int           // clients at the servers
}

// Two lock servers with TLS, rules, metrics and an audit: their certificate is renewed, ZooKeeper is away,
// one of them is drained and the other is killed. Clients lose what REMOTE.md says, and nothing else.
// With -v it prints a timeline:
//
//	go test ./examples/lockd -run 'TestDrill$' -v -args -drill
func TestDrill(t *testing.T) {
	d := &drill{T: t, clients: 12, session: 12 * time.Second, lease: 5 * time.Second, certificate: 5 * time.Second,
		flags: []string{"-session", "12s", "-margin", "5s", "-drain", "30s"}}
	if *wholeDrill {
		d.clients, d.session, d.lease, d.away, d.certificate, d.flags = 200, 30*time.Second, 16*time.Second, time.Minute, 20*time.Second, nil
		d.zk = zktest.Own(t, zktest.TickTime(2*time.Second))
	} else {
		zktest.OneRunIn(t, 40) // it takes most of a minute
		if zktest.RaceDetector {
			t.Skip("a client may be too slow to renew its lease")
		}
		t.Parallel()
		d.zk = zktest.Embedded(t)
	}
	d.fleet = newFleet()
	defer d.dismiss()
	d.start()
	d.renewCertificate()
	d.stopZooKeeper()
	d.drainOne()
	d.killOther()
	d.end()
}

func (d *drill) say(format string, args ...any) {
	d.Logf("%6v  %s", d.now(), fmt.Sprintf(format, args...))
}

// start starts the servers and the clients.
func (d *drill) start() {
	d.authority, d.path = zktest.NewAuthority(d), d.zk.Path(d)
	keys, trust := d.authority.Files(d.authority.IssueChanged("lockd", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(d.certificate) }))
	d.keys, d.certificate = keys, d.now()+d.certificate
	rules := filepath.Join(d.TempDir(), "rules")
	text := "deny spiffe://drill/stranger/* " + d.path + " acquire\nallow spiffe://drill/* " + d.path + " acquire\n"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	d.flags = append(d.flags, "-tls-cert", keys, "-tls-key", keys, "-tls-client-ca", trust, "-allow", rules, "-metrics", "127.0.0.1:0")
	for i := range d.servers {
		d.audits[i] = filepath.Join(d.TempDir(), "audit")
		d.startServer(i)
		d.proxies[i] = zktest.Proxy(d, d.servers[i].addr)
	}
	d.say("two lock servers on ZooKeeper %s, with TLS, rules, metrics and an audit", d.zk.Version(d))
	d.join(d.T, d.authority, d.addresses(), "client", d.path, d.clients)
	d.expectedTotal = d.clients
	d.say("%d clients are connected, two for each of %d locks", d.clients, d.clients/2)
	d.say("each has held its lock after %v more", d.awaitGrants(d.T))
	d.tellMetrics()
}

// startServer starts a server, at the address of its predecessor.
func (d *drill) startServer(i int) {
	flags := append([]string{"-audit", d.audits[i]}, d.flags...)
	if former := d.servers[i]; former != nil {
		flags = append(flags, "-listen", former.addr)
		d.ended = append(d.ended, former)
	}
	d.servers[i] = start(d.T, d.zk, flags...)
}

// addresses returns the servers as clients name them: by the name in their certificate.
func (d *drill) addresses() string {
	return d.address(0) + "," + d.address(1)
}

func (d *drill) address(i int) string {
	return strings.Replace(d.proxies[i].Addr(), "127.0.0.1", "localhost", 1)
}

// metric returns a number of a server's metrics.
func (d *drill) metric(i int, name string) int {
	address := regexp.MustCompile(`metrics are served" address=(\S+)`).FindStringSubmatch(d.servers[i].log())
	answer, err := http.Get("http://" + address[1] + "/metrics")
	if err != nil {
		d.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (-?\d+)$`).FindSubmatch(text)
	if found == nil {
		d.Fatalf("no metric %s in %s", name, text)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		d.Fatal(err)
	}
	return n
}

func (d *drill) sum(name string) int { return d.metric(0, name) + d.metric(1, name) }

// tellMetrics prints what the metrics of both servers say, which must count all clients.
func (d *drill) tellMetrics() {
	zktest.Eventually(d, timeLimit, func() bool { return d.sum("actorlock_server_clients") == d.expectedTotal }, "the metrics count %d clients", d.expectedTotal)
	for i, name := range []string{"A", "B"} {
		d.say("metrics of %s: clients %d, held %d, waiting %d, leases lost %d, late renewals %d, seconds until the certificate ends %d", name,
			d.metric(i, "actorlock_server_clients"), d.metric(i, "actorlock_held"), d.metric(i, "actorlock_waiting"), d.metric(i, "actorlock_server_leases_lost_total"),
			d.metric(i, "actorlock_server_late_renewals_total"), d.metric(i, `actorlock_certificate_ends_seconds{side="clients"}`))
	}
}

// none checks that no grant was lost.
func (d *drill) none(what string) {
	losses := d.takeLosses()
	d.say("%s: %s", what, describe(losses))
	d.checkLosses(losses, 1<<62, "")
}

// renewCertificate renews the servers' certificate on the disk, and cuts all streams after the end of the
// former one.
func (d *drill) renewCertificate() {
	renewed, _ := d.authority.Files(d.authority.IssueChanged("lockd", func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(0, 1, 0) }))
	if err := os.Rename(renewed, d.keys); err != nil {
		d.Fatal(err)
	}
	d.say("the certificate is renewed on the disk; the former one ends at %v", d.certificate)
	if left := d.certificate - d.now(); left > 0 {
		time.Sleep(left + time.Second) // the end of a certificate is a time
	}
	for i, p := range d.proxies {
		d.say("the streams of %s are cut", []string{"A", "B"}[i])
		p.Cut()
	}
	for i := range d.servers {
		d.newcomer(i)
	}
	d.say("all clients held their locks again %v after the cut", d.awaitGrants(d.T))
	d.none("by the renewal")
	if left := d.metric(0, `actorlock_certificate_ends_seconds{side="clients"}`); left < 3600 {
		d.fault("the metrics have the former certificate: it ends in %d s", left)
	}
	d.tellMetrics()
}

// newcomer has one more client connect to a server, and another one that no rule allows.
func (d *drill) newcomer(i int) {
	ctx, cancel := context.WithTimeout(d.ctx, timeLimit)
	defer cancel()
	locks, err := remote.Dial(ctx, d.address(i), d.as(d.authority, "spiffe://drill/stranger/1"))
	if err != nil {
		d.Fatalf("%v; %s", err, d.servers[i].log())
	}
	defer locks.Close()
	if _, err := locks.Mutex(d.path + "/stranger").Lock(ctx); !errors.Is(err, actors.ErrNoAuth) {
		d.fault("a client that the rules deny got %v", err)
	}
}

// stopZooKeeper has ZooKeeper away for longer than the leases.
func (d *drill) stopZooKeeper() {
	d.holdOn.Store(true)
	time.Sleep(2 * time.Second) // until all of them hold
	d.say("ZooKeeper is killed")
	stopped := d.now()
	d.zk.Stop(d.T)
	zktest.Eventually(d, timeLimit, func() bool {
		return d.sum(`actorlock_session_state{state="lost"}`) == 2
	}, "the sessions of both servers are lost")
	d.say("both servers have lost their sessions")
	if left := stopped + d.away - d.now(); left > 0 {
		time.Sleep(left) // so long is ZooKeeper away
	}
	losses := d.takeLosses()
	d.say("by the outage so far: %s", describe(losses))
	// A renewal comes at each third of a lease, so that two thirds at least were left.
	d.checkLosses(losses, stopped+d.lease/2, "client")
	d.holdOn.Store(false)
	d.say("ZooKeeper is started again")
	d.zk.Start(d.T)
	d.say("it serves")
	d.say("all clients held their locks again %v later", d.awaitGrants(d.T))
	late := d.takeLosses()
	d.say("since then: %s", describe(late))
	d.checkLosses(late, stopped+d.lease/2, "client")
}

// drainOne drains a server, as for an upgrade, and starts it again.
func (d *drill) drainOne() {
	d.say("A is sent SIGTERM: clients %d, held %d; clients of B %d", d.metric(0, "actorlock_server_clients"), d.metric(0, "actorlock_held"), d.metric(1, "actorlock_server_clients"))
	d.servers[0].signal(d.T, syscall.SIGTERM)
	d.servers[0].wantCode(d.T, 0)
	d.say("A has drained, with the exit code 0")
	d.say("all clients held their locks again %v later", d.awaitGrants(d.T))
	d.none("by the drain")
	d.startServer(0)
	d.say("A is started again")
	d.join(d.T, d.authority, d.address(0), "fresh", d.path, d.clients/10*2)
	d.expectedTotal += d.clients / 10 * 2
	d.say("%d more clients are connected, which name A alone; all hold after %v", d.clients/10*2, d.awaitGrants(d.T))
	d.tellMetrics()
}

// killOther kills the server that now has the clients.
func (d *drill) killOther() {
	d.say("B is killed: clients %d, held %d", d.metric(1, "actorlock_server_clients"), d.metric(1, "actorlock_held"))
	killed := d.now()
	d.servers[1].signal(d.T, syscall.SIGKILL)
	<-d.servers[1].ended
	d.say("all clients held their locks again %v after the kill", d.awaitGrants(d.T))
	losses := d.takeLosses()
	d.say("by the kill: %s", describe(losses))
	d.checkLosses(losses, killed+d.lease/2, "client")
}

// end ends the clients, and checks the audits and what is left.
func (d *drill) end() {
	cancelled := d.now()
	d.dismiss()
	d.say("all clients are closed after %v", d.now()-cancelled)
	d.none("by the end")
	d.servers[0].signal(d.T, syscall.SIGTERM)
	d.servers[0].wantCode(d.T, 0)
	for i := range d.clients / 2 {
		if nodes := d.zk.Nodes(d, fmt.Sprintf("%s/client-%d", d.path, i)); len(nodes) > 0 {
			d.fault("nodes are left: %q", nodes)
		}
	}
	d.checkAudits()
	for _, line := range d.summary() {
		d.say("lines of clients: %s", line)
	}
	for _, p := range append(d.ended, d.servers[:]...) {
		for line := range strings.Lines(p.log()) {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
				d.say("lockd: %s", strings.TrimSpace(line))
			}
		}
	}
	for _, what := range d.wrong {
		d.Error(what)
	}
}

// checkAudits checks that each grant is in an audit, by the identity of its client.
func (d *drill) checkAudits() {
	identities, events := map[string]string{}, map[string]int{}
	for _, file := range d.audits {
		for _, r := range auditLines(d.T, file) {
			events[r.Event]++
			if r.Event == "grant" {
				identities[r.Token+" "+r.Path] = r.Identity
			}
		}
	}
	if events["loss"] == 0 || events["grant"] < events["release"]+events["loss"] {
		d.fault("the audits have %v, though clients lost grants", events)
	}
	missing := 0
	for grant, name := range d.grants {
		switch identity, is := identities[grant]; {
		case !is:
			missing++
		case identity != name:
			d.fault("the audit has %s of %q, not of %q", grant, identity, name)
		}
	}
	d.say("audits: %v; %d of %d grants of clients are missing", events, missing, len(d.grants))
	if missing > d.clients { // those that B had not yet written when it was killed
		d.fault("the audits lack %d grants", missing)
	}
}
