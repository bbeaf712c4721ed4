//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// auditLines returns the lines of an audit so far.
func auditLines(t *testing.T, file string) (all []auditRecord) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var r auditRecord
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		all = append(all, r)
	}
	return all
}

// The audit has a line for each grant, release and loss, and for what a client changes.
func TestAudit(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	path := zk.Path(t)
	file := filepath.Join(t.TempDir(), "audit")
	p := start(t, zk, "-insecure", "-audit", file)
	locks := p.client(t)
	first := hold(t, locks, path)
	if err := first.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := hold(t, locks, path)
	if broken, err := p.client(t).Revoke(t.Context(), second.Node(), time.Nanosecond); err != nil || !broken {
		t.Errorf("%v, %v", broken, err)
	}
	<-second.Done()
	count := func() int { return len(auditLines(t, file)) }
	zktest.Eventually(t, timeLimit, func() bool { return count() >= 5 }, "five lines")
	var events []string
	for _, r := range auditLines(t, file) {
		events = append(events, r.Event)
		switch r.Event {
		case "grant", "release", "loss":
			token := first.Token()
			if len(events) > 2 {
				token = second.Token()
			}
			if r.Path != path || r.Token != token.String() || r.Recipe == "" || !strings.HasPrefix(r.Address, "127.0.0.1:") || !isTime(r.Time) {
				t.Errorf("%+v", r)
			}
		case "revoke":
			if r.Path != second.Node() || len(r.Change) == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	text := strings.Join(events, " ")
	if !strings.HasPrefix(text, "grant release grant ") || !strings.Contains(text, "loss") || !strings.Contains(text, "revoke") {
		t.Errorf("%q", events)
	}

	// The file is opened again, as after a rotation.
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	zktest.Eventually(t, timeLimit, func() bool { _, err := os.Stat(file); return err == nil }, "a new file")
	if err := hold(t, locks, path).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, timeLimit, func() bool { return count() == 2 }, "two lines in the new file")
}

// blockingOutput blocks until it is opened.
type blockingOutput struct {
	open chan struct{}
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *blockingOutput) Write(b []byte) (int, error) {
	<-o.open
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// isTime reports whether a time is as the contract says, and of the last minutes.
func isTime(s string) bool {
	at, err := time.Parse(time.RFC3339Nano, s)
	return err == nil && time.Since(at) < 10*time.Minute
}

// Nothing waits for an output that blocks or fails. What is dropped is said.
func TestAuditDrops(t *testing.T) {
	t.Parallel()
	out := &blockingOutput{open: make(chan struct{})}
	a, err := openAudit("-", out, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	const records = 3 * auditRoom
	for range records {
		a.add(&auditRecord{Event: "grant"})
	}
	dropped := a.dropped.Load()
	if dropped < auditRoom || dropped > records-auditRoom {
		t.Errorf("%d are dropped", dropped)
	}
	close(out.open)
	zktest.Eventually(t, timeLimit, func() bool { return a.pending() == 0 }, "all are written")
	a.add(&auditRecord{Event: "release"})
	a.close()
	<-a.ended // close waits for a second
	grants, said := 0, uint64(0)
	for line := range strings.Lines(out.text.String()) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Event == "grant" {
			grants++
		}
		said += r.Lines
	}
	if said != dropped || uint64(grants) != records-dropped {
		t.Errorf("%d lines, and %d said to be dropped; want %d and %d", grants, said, records-dropped, dropped)
	}

	var log bytes.Buffer
	full, err := openAudit("/dev/full", io.Discard, func(format string, args ...any) { log.WriteString(format) })
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	full.add(&auditRecord{Event: "grant"})
	zktest.Eventually(t, timeLimit, func() bool { return full.dropped.Load() == 1 }, "it is dropped")
	full.close()
	if n := strings.Count(log.String(), "lines are dropped so far"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}

// failingOutput fails until it works.
type failingOutput struct {
	works atomic.Bool
	text  bytes.Buffer
}

func (o *failingOutput) Write(b []byte) (int, error) {
	if !o.works.Load() {
		return 0, errors.New("no space")
	}
	return o.text.Write(b)
}

// After an output that has failed works again, a line says how many were dropped, also in place of such lines
// that were dropped themselves.
func TestAuditAfterAFailure(t *testing.T) {
	out := &failingOutput{}
	a, err := openAudit("-", out, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	var added uint64
	for _, n := range []int{20000, 1, 1} { // more than fit into the buffer, and then one
		for range n {
			a.add(&auditRecord{Event: "grant"})
			added++
		}
		zktest.Eventually(t, timeLimit, func() bool { return a.dropped.Load() == added }, "they are dropped")
	}
	out.works.Store(true)
	a.add(&auditRecord{Event: "release"})
	a.close()
	var said uint64
	for line := range strings.Lines(out.text.String()) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		said += r.Lines
	}
	if dropped := a.dropped.Load(); said != dropped || dropped != added || !strings.Contains(out.text.String(), "release") {
		t.Errorf("%d are dropped, and %d said to be, want %d: %s", dropped, said, added, &out.text)
	}
}

// The metrics have what lockd does, and all counters from 0 on.
func TestMetrics(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	p := start(t, zk, "-insecure", "-metrics", "127.0.0.1:0", "-lease", "2s")
	address := regexp.MustCompile(`metrics are served" address=(\S+)`)
	zktest.Eventually(t, timeLimit, func() bool { return address.MatchString(p.log()) }, "the address of the metrics")
	get := func(path string) (int, string) {
		answer, err := http.Get("http://" + address.FindStringSubmatch(p.log())[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	defer http.DefaultClient.CloseIdleConnections()
	has := func(lines ...string) bool {
		_, text := get("/metrics")
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				return false
			}
		}
		return true
	}
	if code, text := get("/health"); code != http.StatusOK || text != "SERVING\n" {
		t.Errorf("%d, %q", code, text)
	}
	if !has("actorlock_server_clients 0", "actorlock_held 0", `actorlock_lost_total{reason="session_lost"} 0`, `actorlock_refused_total{reason="timed_out"} 0`,
		`actorlock_session_state{state="connected"} 1`, `actorlock_session_changes_total{state="lost"} 0`, `actorlock_server_limit_refusals_total{limit="clients"} 0`, `actorlock_server_limit_refusals_total{limit="data"} 0`,
		"actorlock_server_late_renewals_total 0", "actorlock_server_pending_messages 0", "actorlock_server_pending_bytes 0") {
		_, text := get("/metrics")
		t.Error(text)
	}
	locks := p.client(t)
	path := zk.Path(t)
	grant := hold(t, locks, path)
	if _, err := p.client(t).Mutex(path).Lock(t.Context(), actors.Try()); !errors.Is(err, actors.ErrNotAcquired) {
		t.Error(err)
	}
	zktest.Eventually(t, timeLimit, func() bool {
		return has("actorlock_server_clients 2", "actorlock_held 1", "actorlock_acquired_total 1", `actorlock_refused_total{reason="not_acquired"} 1`,
			`actorlock_acquire_duration_seconds_bucket{kind="exclusive",outcome="acquired",recipe="mutex",le="+Inf"} 1`,
			`actorlock_acquire_duration_seconds_count{kind="exclusive",outcome="not_acquired",recipe="mutex"} 1`)
	}, "a held lock")
	if err := zk.Client(t).Delete(grant.Node(), -1); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, timeLimit, func() bool {
		return has("actorlock_held 0", `actorlock_lost_total{reason="node_deleted"} 1`, `actorlock_hold_duration_seconds_count{kind="exclusive",outcome="node_deleted",recipe="mutex"} 1`)
	}, "a lost grant")
}

// The cost of the audit for a grant and its release, with the formatting and the writing: the time of
// the processor (cpu-ns/op) does not depend on what else the machine does.
func BenchmarkAudit(b *testing.B) {
	a, err := openAudit(filepath.Join(b.TempDir(), "audit"), io.Discard, b.Logf)
	if err != nil {
		b.Fatal(err)
	}
	q := &monitoredRequest{monitor: &monitor{audit: a}, request: actors.MonitoredRequest{Path: "/locks/orders/1234", Recipe: "mutex", Kind: "exclusive", Owner: "12/backup"}}
	q.client.Name, q.client.Address = "spiffe://prod/backup", "10.1.2.3:45678"
	b.ReportAllocs()
	cpu := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := cpu()
	for b.Loop() {
		q.Granted(time.Millisecond, actors.Token{Czxid: 1})
		q.Ended(time.Millisecond, nil)
		for a.pending() > auditSpare {
			time.Sleep(time.Millisecond) // so that the time has the writing
		}
	}
	a.close()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(a.dropped.Load()), "dropped")
}
