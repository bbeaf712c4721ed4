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

// Mode is the mode of a holder of a [Resource].
type Mode string

// The modes. The holder of a mutex or a write lock is exclusive. Holders of a read lock or a
// semaphore are shared.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// holdTime is how long a contender at least stays inside, so that a second one would come in during
// that time.
const holdTime = 200 * time.Microsecond

// Resource is the resource that a lock protects in a test: a file to which each contender, of any
// language and process, appends a line when it enters and when it leaves. The kernel puts the lines
// in one order. A contender enters after its acquire and leaves before its release, so that the
// lines of two contenders that were inside together are interleaved.
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

// Enter records that a holder is inside, and returns a function that records that it has left. No
// other holder may have its name: a second holder of that name inside is a violation. The node,
// which may be empty, is only returned by [Resource.Visits].
func (r *Resource) Enter(name string, mode Mode, node string) (leave func()) {
	r.append("enter", name, string(mode), node)
	return func() { r.append("leave", name) }
}

// Forget records that a holder is not inside any more because its process was killed or it has lost
// its lock.
func (r *Resource) Forget(name string) { r.append("forget", name) }

func (r *Resource) append(fields ...string) {
	r.t.Helper()
	if _, err := r.file.WriteString(strings.Join(fields, "\t") + "\n"); err != nil {
		r.t.Errorf("interop: %v", err)
	}
}

// Contend acquires, enters, leaves and releases in each round, for a contender in Go. It blocks
// until all rounds are done, and returns the first error. Contenders of other processes have
// [Lock.Contend].
func (r *Resource) Contend(name string, mode Mode, rounds int, acquire func() (release func() error, err error)) error {
	for i := range rounds {
		release, err := acquire()
		if err != nil {
			return fmt.Errorf("%s, in round %d: %w", name, i, err)
		}
		leave := r.Enter(name, mode, "")
		time.Sleep(holdTime)
		leave()
		if err := release(); err != nil {
			return fmt.Errorf("%s, in round %d: %w", name, i, err)
		}
	}
	return nil
}

// Visit is the time from one enter to the leave.
type Visit struct {
	Name string // of the holder
	Mode Mode
	Node string // of the holder, if its library reports it
	Over bool   // it has left
}

// Visits returns the visits so far, in the order of entering.
func (r *Resource) Visits() []Visit {
	r.t.Helper()
	visits, _ := r.replay(0)
	return visits
}

// Rounds returns the number of a holder's visits that are over.
func (r *Resource) Rounds(name string) int {
	r.t.Helper()
	n := 0
	for _, v := range r.Visits() {
		if v.Name == name && v.Over {
			n++
		}
	}
	return n
}

// Verify returns an error for each contender that was inside together with an exclusive holder, or
// with limit or more shared ones; 0 is no limit. It may be called while contenders run.
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

// replay returns the visits of a log. Its error has all violations.
func replay(log string, limit int) (visits []Visit, err error) {
	inside := map[string]int{} // the holder's index in visits
	var violations []error
	for i, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		report := func(format string, args ...any) {
			violations = append(violations, fmt.Errorf("interop: line %d: %s", i+1, fmt.Sprintf(format, args...)))
		}
		verb, rest, _ := strings.Cut(line, "\t")
		fields := strings.Split(rest, "\t")
		visit, isInside := inside[fields[0]]
		switch {
		case log == "":
		case verb == "enter" && len(fields) == 3:
			v := Visit{Name: fields[0], Mode: Mode(fields[1]), Node: fields[2]}
			for name, other := range inside {
				if o := visits[other]; v.Mode == Exclusive || o.Mode == Exclusive || name == v.Name {
					report("%s enters (%s) while %s is inside (%s)", v.Name, v.Mode, name, o.Mode)
				}
			}
			if limit > 0 && len(inside) >= limit {
				report("%s enters, and with it more than %d are inside", v.Name, limit)
			}
			inside[v.Name] = len(visits)
			visits = append(visits, v)
		case verb == "leave" && isInside:
			visits[visit].Over = true
			delete(inside, fields[0])
		case verb == "forget":
			delete(inside, fields[0])
		default:
			report("%q", line)
		}
	}
	return visits, errors.Join(violations...)
}
