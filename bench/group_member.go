package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// memberCommand is the first argument of this binary as a member of a group: member PEER ADDR. It answers the requests
//
//	join path=/b/1 partitions=256 number=1 timeout=4000000000 terms=/tmp/x store=/tmp/y
//	leave
//
// as a worker does. It ends when its standard input ends, and if it cannot be a member any more.
const memberCommand = "member"

// groupSpec is the group that a member is to join.
type groupSpec struct {
	addr    string
	path    string
	count   int           // of partitions
	number  int           // of the member, from 1 on
	timeout time.Duration // of its session or lease
}

// joinGroup has this process be a member of a group until leave. It does not wait until the member leads. It tells the ledger of each
// term. leave returns when the member leads nothing, and has left. A member that cannot go on reports that to failed.
type joinGroup func(ctx context.Context, s groupSpec, l *termLedger, failed func(error)) (leave func() error, err error)

func serveMember(name, addr string, in io.Reader, out io.Writer) (code int) {
	p, ok := findPeer(name)
	if !ok || p.join == nil {
		fmt.Fprintf(os.Stderr, "member: peer %q has no groups\n", name)
		return exitUsage
	}
	leave := func() error { return nil }
	fmt.Fprintln(out, "ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		m, err := parseMessage(lines.Text())
		switch {
		case err != nil:
		case m.verb == "join":
			leave, err = joinAsAsked(p, addr, m)
		case m.verb == "leave":
			err = leave()
		default:
			err = fmt.Errorf("unknown verb %q: accepted are join and leave", m.verb)
		}
		if err != nil {
			fmt.Fprintln(out, "error", oneLine(err))
			continue
		}
		fmt.Fprintln(out, "ready")
	}
	return 0
}

func joinAsAsked(p peer, addr string, m message) (leave func() error, err error) {
	var numbers [3]int64
	for i, key := range []string{"partitions", "number", "timeout"} {
		if numbers[i], err = m.number(key); err != nil {
			return nil, err
		}
	}
	s := groupSpec{addr: addr, path: m.args["path"], count: int(numbers[0]), number: int(numbers[1]), timeout: time.Duration(numbers[2])}
	store, _, err := openStore(m.args["store"], s.count)
	if err != nil {
		return nil, err
	}
	terms, _, err := mapFile[termRecord](m.args["terms"], maxTerms)
	if err != nil {
		return nil, err
	}
	l := newLedger(s.number, store, terms)
	go l.work()
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	return p.join(ctx, s, l, func(err error) {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(exitFailed)
	})
}

// message returns the request to join.
func (s groupSpec) message(terms, store string) message {
	return message{"join", map[string]string{"path": s.path, "partitions": strconv.Itoa(s.count), "number": strconv.Itoa(s.number),
		"timeout": strconv.FormatInt(s.timeout.Nanoseconds(), 10), "terms": terms, "store": store}}
}
