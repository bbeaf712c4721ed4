package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
)

// audit writes a line of JSON for each grant, release and loss of clients' locks, and for each change
// that they ask for. Nothing waits for it: what cannot be written is dropped and counted, and a line
// says so once lines can be written again.
type audit struct {
	name    string // of the file; "-" is standard output
	out     io.Writer
	warn    func(format string, args ...any)
	added   chan struct{} // has a value once a record waits
	reopens chan struct{}
	closing chan struct{}
	ended   chan struct{}
	dropped atomic.Uint64 // all of them
	warned  time.Time     // of the last warning

	mu      sync.Mutex
	waiting []auditRecord // at most auditRoom
}

// auditRecord is a line. Its fields are a contract.
type auditRecord struct {
	Time     string          `json:"time"`  // as RFC 3339 has it
	Event    string          `json:"event"` // grant, release, loss, dropped, or the kind of a change
	Identity string          `json:"identity,omitempty"`
	Address  string          `json:"address,omitempty"`
	Path     string          `json:"path,omitempty"`
	Recipe   string          `json:"recipe,omitempty"`
	Kind     string          `json:"kind,omitempty"`
	Owner    string          `json:"owner,omitempty"`
	Token    string          `json:"token,omitempty"`
	Seconds  float64         `json:"seconds,omitempty"` // waited until the grant; held until the release or loss
	Change   json.RawMessage `json:"arguments,omitempty"`
	Error    string          `json:"error,omitempty"`
	Lines    uint64          `json:"lines,omitempty"` // how many were dropped
	at       time.Time
	token    actors.Token
}

// auditRoom is how many records wait for the disk at most.
const auditRoom = 1 << 16

// auditSpare is how many records have room that is kept for the next.
const auditSpare = 1 << 12

// auditPause is how long records wait at most for others that are written with them: without it each
// record wakes the writer, and costs a system call. A killed lockd loses the records that wait.
const auditPause = 10 * time.Millisecond

// openAudit begins an audit, which close ends.
func openAudit(name string, out io.Writer, warn func(format string, args ...any)) (*audit, error) {
	a := &audit{name: name, out: out, warn: warn, added: make(chan struct{}, 1), reopens: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	if name != "-" {
		if err := a.open(); err != nil {
			return nil, err
		}
	}
	go a.write()
	return a, nil
}

func (a *audit) open() error {
	file, err := os.OpenFile(a.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("-audit: %w", err)
	}
	a.out = file
	return nil
}

// reopen opens the file again, which another program may have moved away.
func (a *audit) reopen() { notify(a.reopens) }

// auditEnd is how long close waits for the disk.
const auditEnd = time.Second

// close writes what waits. A record that comes after it is lost.
func (a *audit) close() {
	close(a.closing)
	select {
	case <-a.ended:
	case <-time.After(auditEnd):
		a.warn("-audit %s: %d lines or more are not written, as the output blocks", a.name, a.pending())
	}
}

// add adds a record. It never blocks.
func (a *audit) add(r *auditRecord) {
	a.mu.Lock()
	n := len(a.waiting)
	if n < auditRoom {
		a.waiting = append(a.waiting, *r)
	}
	a.mu.Unlock()
	switch n {
	case 0:
		notify(a.added)
	case auditRoom:
		a.dropped.Add(1)
	}
}

// notify leaves a value in a channel of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pending returns the number of records that wait.
func (a *audit) pending() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// take returns the records that wait, and has others wait in spare.
func (a *audit) take(spare []auditRecord) []auditRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.waiting
	a.waiting = spare
	return taken
}

// write writes the records until close, and what waits at one moment at once, every auditPause.
func (a *audit) write() {
	defer close(a.ended)
	buffered := bufio.NewWriterSize(a.out, 64<<10)
	encoder := json.NewEncoder(buffered)
	lines := uint64(0) // in buffered
	said := uint64(0)  // dropped lines that a line of the audit has
	written := func(err error) bool {
		if err != nil {
			a.failed(err, lines)
			buffered.Reset(a.out)
			encoder = json.NewEncoder(buffered) // one that has failed goes on to fail
			lines = 0
		}
		return err == nil
	}
	put := func(r *auditRecord) {
		r.Time = r.at.Format(time.RFC3339Nano)
		if r.token != (actors.Token{}) {
			r.Token = r.token.String()
		}
		written(encoder.Encode(r))
	}
	var spare []auditRecord
	flush := func() {
		taken := a.take(spare[:0])
		for i := range taken {
			lines++
			put(&taken[i])
		}
		dropped := a.dropped.Load() // the line that reports them does not count
		if dropped > said {
			put(&auditRecord{at: time.Now(), Event: "dropped", Lines: dropped - said})
		}
		if written(buffered.Flush()) {
			said = dropped
		}
		lines = 0
		clear(taken)
		spare = taken
		if len(taken) > auditSpare {
			spare = nil
		}
	}
	for {
		select {
		case <-a.closing:
			flush()
			return
		case <-a.added:
			flush()
			select {
			case <-time.After(auditPause):
			case <-a.closing:
			}
		case <-a.reopens:
			flush()
			if a.name == "-" {
				continue
			}
			former := a.out
			if err := a.open(); err != nil {
				a.warn("%v; the former file is written on", err)
				continue
			}
			former.(io.Closer).Close() // all of it is written
			buffered.Reset(a.out)
		}
	}
}

// failed counts lines that could not be written. A line of the log says so once in ten seconds.
func (a *audit) failed(err error, lines uint64) {
	all := a.dropped.Add(lines)
	if now := time.Now(); now.Sub(a.warned) >= 10*time.Second {
		a.warned = now
		a.warn("-audit %s: %v; %d lines are dropped so far", a.name, err, all)
	}
}

// changed implements remote.ServerConfig.Changed.
func (a *audit) changed(client remote.Peer, change remote.Change, err error) {
	r := &auditRecord{at: time.Now(), Event: change.Kind, Identity: client.Name, Address: client.Address, Path: change.Path}
	if json.Valid(change.Arguments) {
		r.Change = change.Arguments
	}
	if err != nil {
		r.Error = err.Error()
	}
	a.add(r)
}
