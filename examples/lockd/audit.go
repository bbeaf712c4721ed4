package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	records chan auditRecord
	reopens chan struct{}
	closing chan struct{}
	ended   chan struct{}
	dropped atomic.Uint64 // all of them
	written time.Time     // of the last warning
	told    uint64        // dropped lines that a line of the audit has
}

// auditRecord is a line. Its fields are a contract.
type auditRecord struct {
	Time     time.Time       `json:"time"`
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
	token    actors.Token
}

// auditRoom is how many records wait for the disk at most.
const auditRoom = 1 << 16

// openAudit begins an audit, which close ends.
func openAudit(name string, out io.Writer, warn func(format string, args ...any)) (*audit, error) {
	a := &audit{name: name, out: out, warn: warn, records: make(chan auditRecord, auditRoom), reopens: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
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
func (a *audit) reopen() {
	select {
	case a.reopens <- struct{}{}:
	default:
	}
}

// auditEnd is how long close waits for the disk.
const auditEnd = time.Second

// close writes what waits. A record that comes after it is lost.
func (a *audit) close() {
	close(a.closing)
	select {
	case <-a.ended:
	case <-time.After(auditEnd):
		a.warn("-audit %s: %d lines are not written, as the output blocks", a.name, len(a.records))
	}
}

// add adds a record. It never blocks.
func (a *audit) add(r auditRecord) {
	select {
	case a.records <- r:
	default:
		a.dropped.Add(1)
	}
}

// write writes the records until close, and what waits at one moment at once.
func (a *audit) write() {
	defer close(a.ended)
	buffered := bufio.NewWriterSize(a.out, 64<<10)
	lines := uint64(0) // in buffered
	put := func(r auditRecord) {
		if r.token != (actors.Token{}) {
			r.Token = r.token.String()
		}
		text, err := json.Marshal(r)
		if err == nil {
			_, err = buffered.Write(append(text, '\n'))
		}
		if lines++; err != nil {
			a.failed(err, lines)
			buffered.Reset(a.out)
			lines = 0
		}
	}
	flush := func() {
		if err := buffered.Flush(); err != nil {
			a.failed(err, lines)
			buffered.Reset(a.out)
		}
		lines = 0
	}
	for {
		select {
		case <-a.closing:
			for len(a.records) > 0 {
				put(<-a.records)
			}
			flush()
			return
		case r := <-a.records:
			if all := a.dropped.Load(); all > a.told && len(a.records) < auditRoom/2 {
				before := a.told
				a.told = all
				put(auditRecord{Time: time.Now(), Event: "dropped", Lines: all - before})
			}
			put(r)
			if len(a.records) == 0 {
				flush()
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
	if now := time.Now(); now.Sub(a.written) >= 10*time.Second {
		a.written = now
		a.warn("-audit %s: %v; %d lines are dropped so far", a.name, err, all)
	}
}

// changed implements remote.ServerConfig.Changed.
func (a *audit) changed(client remote.Peer, change remote.Change, err error) {
	r := auditRecord{Time: time.Now(), Event: change.Kind, Identity: client.Name, Address: client.Address, Path: change.Path}
	if json.Valid(change.Arguments) {
		r.Change = change.Arguments
	}
	if err != nil {
		r.Error = err.Error()
	}
	a.add(r)
}
