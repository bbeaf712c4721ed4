package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Mode says whether holders may share a [Resource].
type Mode string

// The modes: a mutex and a write lock are exclusive, a read lock and a semaphore are shared.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// stay is how long a contender at least stays inside, so that others would meet it there.
const stay = 200 * time.Microsecond

// Resource is what a lock protects in a test: a file to which each contender appends a line when it enters and when it
// leaves, whatever the language and the process. The kernel puts the lines in one order, and a contender enters after
// it has acquired and leaves before it releases; so two that were inside together have their lines interleaved.
type Resource struct {
	t    testing.TB
	file *os.File
}

// NewResource returns a resource without a contender inside.
func NewResource(t testing.TB) *Resource {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "resource"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatalf("interop: %v", err)
	}
	t.Cleanup(func() { file.Close() })
	return &Resource{t: t, file: file}
}

// Enter notes that a holder is inside, and returns what notes that it has left. The holder's name is its own: a name
// that is inside already is a violation. The node is only kept for [Resource.Visits] and may be empty.
func (r *Resource) Enter(who string, mode Mode, node string) (leave func()) {
	r.append("enter", who, string(mode), node)
	return func() { r.append("leave", who) }
}

// Forget notes that a holder is inside no more because its process was killed or its lock was taken from it.
func (r *Resource) Forget(who string) { r.append("forget", who) }

func (r *Resource) append(fields ...string) {
	r.t.Helper()
	if _, err := r.file.WriteString(strings.Join(fields, "\t") + "\n"); err != nil {
		r.t.Errorf("interop: %v", err)
	}
}

// Contend acquires, enters, leaves and releases again and again, for a contender that is written in Go. It blocks until
// all rounds are done, and returns the first error. The contenders of other processes have [Lock.Contend].
func (r *Resource) Contend(who string, mode Mode, rounds int, acquire func() (release func() error, err error)) error {
	for i := range rounds {
		release, err := acquire()
		if err != nil {
			return fmt.Errorf("%s, in round %d: %w", who, i, err)
		}
		leave := r.Enter(who, mode, "")
		time.Sleep(stay)
		leave()
		if err := release(); err != nil {
			return fmt.Errorf("%s, in round %d: %w", who, i, err)
		}
	}
	return nil
}

// Visit is one stay in a resource.
type Visit struct {
	Who  string
	Mode Mode
	Node string // the holder's node, where it has one and its library tells
	Over bool   // it has left
}

// Visits returns the visits so far, in the order of entering.
func (r *Resource) Visits() []Visit {
	r.t.Helper()
	visits, _ := r.replay(0)
	return visits
}

// Rounds counts how many stays of a holder are over by now.
func (r *Resource) Rounds(who string) int {
	r.t.Helper()
	n := 0
	for _, v := range r.Visits() {
		if v.Who == who && v.Over {
			n++
		}
	}
	return n
}

// Verify returns an error for each time that a contender was inside beside an exclusive holder, or that more than limit
// shared holders were inside; 0 is no limit. It may be called while contenders run.
func (r *Resource) Verify(limit int) error {
	r.t.Helper()
	_, err := r.replay(limit)
	return err
}

func (r *Resource) replay(limit int) ([]Visit, error) {
	r.t.Helper()
	log, err := os.ReadFile(r.file.Name())
	if err != nil {
		r.t.Fatalf("interop: %v", err)
	}
	return replay(string(log), limit)
}

// replay goes through a log. Everything that is wrong with it is in the error.
func replay(log string, limit int) (visits []Visit, err error) {
	inside := map[string]int{} // the holder's index in visits
	var wrong []error
	for i, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		report := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("interop: line %d: %s", i+1, fmt.Sprintf(format, args...)))
		}
		verb, rest, _ := strings.Cut(line, "\t")
		fields := strings.Split(rest, "\t")
		visit, there := inside[fields[0]]
		switch {
		case log == "":
		case verb == "enter" && len(fields) == 3:
			v := Visit{Who: fields[0], Mode: Mode(fields[1]), Node: fields[2]}
			for who, other := range inside {
				if o := visits[other]; v.Mode == Exclusive || o.Mode == Exclusive || who == v.Who {
					report("%s enters (%s) while %s is inside (%s)", v.Who, v.Mode, who, o.Mode)
				}
			}
			if limit > 0 && len(inside) >= limit {
				report("%s enters, and with it more than %d are inside", v.Who, limit)
			}
			inside[v.Who] = len(visits)
			visits = append(visits, v)
		case verb == "leave" && there:
			visits[visit].Over = true
			delete(inside, fields[0])
		case verb == "forget":
			delete(inside, fields[0])
		default:
			report("%q", line)
		}
	}
	return visits, errors.Join(wrong...)
}
