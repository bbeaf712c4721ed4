package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench writes a line to a worker's standard input for each request, and the worker answers by a line on its standard output:
//
//	prepare path=/b/1 clients=64 locks=1 acknowledged=0 own=0 sections=/tmp/x process=0 recipe=mutex connections=1 hold=0 fresh=0
//	ready
//	run from=123456 until=234567 await_turns=0
//	result ops=9 total=11 violations=0 latencies=512:9
//	special name=futures path=/b/2 locks=0 nanos=1000000000
//	result ops_per_sec=5 ...
//
// A request that fails has the answer "error TEXT". A worker ends when its standard input ends. Instants are CLOCK_MONOTONIC
// in nanoseconds. With await_turns a worker counts from the moment when every client has held a lock. Workers in other
// languages need not support special.

// message is one line: a verb, and words of the form key=value.
type message struct {
	verb string
	args map[string]string
}

func parseMessage(line string) (message, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	m := message{verb, map[string]string{}}
	if verb == "error" {
		return m, fmt.Errorf("%s", rest)
	}
	for _, word := range strings.Fields(rest) {
		key, value, found := strings.Cut(word, "=")
		if !found {
			return m, fmt.Errorf("%q in %q: it must be key=value", word, line)
		}
		m.args[key] = value
	}
	return m, nil
}

func (m message) String() string {
	words := []string{m.verb}
	for _, key := range slices.Sorted(maps.Keys(m.args)) {
		words = append(words, key+"="+m.args[key])
	}
	return strings.Join(words, " ")
}

// number returns an argument as a number. A missing argument is an error.
func (m message) number(key string) (int64, error) {
	n, err := strconv.ParseInt(m.args[key], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s=%q: it must be a number", m.verb, key, m.args[key])
	}
	return n, nil
}

// load is the work of a worker: clients that acquire and release without pause.
type load struct {
	path         string        // the path of lock i is path/i
	clients      int           // goroutines or threads
	locks        int           // divided evenly between the clients; a client with several locks uses them in turn
	acknowledged bool          // clients wait for the acknowledgement of each release
	ownObjects   bool          // each client has a lock object of its own, also if the peer lets clients share one
	sections     string        // name of the file with the sections that processes share; empty for one process
	process      int           // number of this process among them
	recipe       string        // as in access; every writesOf-th turn at a read-write lock is a write
	connections  int           // at least one; divided between the clients, by this library only
	hold         time.Duration // how long a holder sleeps with the lock
	fresh        bool          // whether each turn has a path of its own
}

// writesOf is the number of turns at a read-write lock of which one is a write.
const writesOf = 10

func (l load) message() message {
	return message{"prepare", map[string]string{
		"path":         l.path,
		"clients":      strconv.Itoa(l.clients),
		"locks":        strconv.Itoa(l.locks),
		"acknowledged": strconv.Itoa(btoi(l.acknowledged)),
		"own":          strconv.Itoa(btoi(l.ownObjects || l.fresh)),
		"sections":     l.sections,
		"process":      strconv.Itoa(l.process),
		"recipe":       cmp.Or(l.recipe, mutex),
		"connections":  strconv.Itoa(max(l.connections, 1)),
		"hold":         strconv.FormatInt(l.hold.Nanoseconds(), 10),
		"fresh":        strconv.Itoa(btoi(l.fresh)),
	}}
}

func parseLoad(m message) (load, error) {
	var numbers [8]int64
	for i, key := range []string{"clients", "locks", "acknowledged", "own", "process", "connections", "hold", "fresh"} {
		var err error
		if numbers[i], err = m.number(key); err != nil {
			return load{}, err
		}
	}
	return load{
		path:         m.args["path"],
		clients:      int(numbers[0]),
		locks:        int(numbers[1]),
		acknowledged: numbers[2] == 1,
		ownObjects:   numbers[3] == 1,
		sections:     m.args["sections"],
		process:      int(numbers[4]),
		recipe:       m.args["recipe"],
		connections:  int(numbers[5]),
		hold:         time.Duration(numbers[6]),
		fresh:        numbers[7] == 1,
	}, nil
}

// numbers returns all arguments as numbers.
func (m message) numbers() (map[string]float64, error) {
	numbers := map[string]float64{}
	for key, value := range m.args {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s=%q: it must be a number", m.verb, key, value)
		}
		numbers[key] = n
	}
	return numbers, nil
}

// tally is the count of a load's clients.
type tally struct {
	ops        int // acquires in the window; with several processes, hand-offs between them
	total      int // acquires also before and after the window
	violations int
	latencies  histogram // of ops
	used       cost      // by all acquires; bench measures it, not the worker
}

func (t *tally) merge(other tally) {
	t.ops += other.ops
	t.total += other.total
	t.violations += other.violations
	t.latencies.merge(&other.latencies)
	t.used = t.used.plus(other.used)
}

func (t tally) message() message {
	return message{"result", map[string]string{
		"ops":        strconv.Itoa(t.ops),
		"total":      strconv.Itoa(t.total),
		"violations": strconv.Itoa(t.violations),
		"latencies":  t.latencies.String(),
	}}
}

func parseTally(m message) (t tally, err error) {
	for key, into := range map[string]*int{"ops": &t.ops, "total": &t.total, "violations": &t.violations} {
		n, err := m.number(key)
		if err != nil {
			return t, err
		}
		*into = int(n)
	}
	t.latencies, err = parseHistogram(m.args["latencies"])
	if err == nil && t.latencies.total() != t.ops {
		err = fmt.Errorf("%s: %d latencies of %d operations", m.verb, t.latencies.total(), t.ops)
	}
	return t, err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
