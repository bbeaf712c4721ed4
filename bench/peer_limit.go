package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// The size of the limit's transactions: as many creates, and as many deletes of the nodes before.
const (
	limitBatch    = 64
	limitInFlight = 3 // at least
)

var limit = peer{
	name: "limit",
	about: "the transactions of this library's mutex without locks, clients that wait, or a library: creates of nodes with the same names and sizes, " +
		"deletes of the nodes before, and a write of the session node; what this server can do at most",
	server: "zookeeper",
	version: func() string {
		return fmt.Sprintf("%d creates and deletes in each, at least %d under way", limitBatch, limitInFlight)
	},
	unlocked: true,
	only:     []string{hot64.name, many256.name},
	open: func(ctx context.Context, addr string) (driver, error) {
		conn, err := dialZooKeeper(ctx, addr)
		return &limitDriver{conn: conn, addr: strings.Split(addr, ",")[0]}, err
	},
}

// limitDriver does the work of a load itself.
type limitDriver struct {
	conn *zk.Conn // for what is not measured
	addr string
}

func (d *limitDriver) lock(context.Context, access) (locker, error) {
	return nil, fmt.Errorf("limit has no locks")
}

func (d *limitDriver) close() { d.conn.Close() }

// prepare makes the directories and the session node, and opens a session.
func (d *limitDriver) prepare(ctx context.Context, l load) (prepared, error) {
	b := &batches{sessionNode: l.path + "/session"}
	for i := range l.locks {
		directory := fmt.Sprintf("%s/%d", l.path, i)
		if err := makeDirectory(d.conn, directory); err != nil {
			return nil, err
		}
		b.directories = append(b.directories, directory)
	}
	if err := makeDirectory(d.conn, b.sessionNode); err != nil {
		return nil, err
	}
	return b, b.connect(ctx, d.addr)
}

// batches are transactions on one connection, several under way at a time.
type batches struct {
	directories []string
	sessionNode string
	conn        net.Conn
	reader      *bufio.Reader
	frame       []byte // that is written next
	next        int    // number of the next create
}

// limitTransaction is a transaction and what it has created.
type limitTransaction struct {
	sent    int64    // instant
	created [][]byte // paths
}

// free ends the session, with which its nodes go.
func (b *batches) free() {
	f := make([]byte, 4+4+4) // length, number, operation
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	binary.BigEndian.PutUint32(f[8:], closeOp)
	_, _ = b.conn.Write(f)
	b.conn.Close()
}

// run sends transactions until the second instant, each for as many acquires and releases as it creates nodes.
func (b *batches) run(from, until int64, _ bool) (t tally, err error) {
	underWay := make([]limitTransaction, max(limitInFlight, len(b.directories)/limitBatch))
	for i := range underWay {
		if err := b.send(&underWay[i]); err != nil {
			return t, err
		}
	}
	for i := 0; ; i = (i + 1) % len(underWay) { // answers come in the order of the requests
		if err := b.receive(&underWay[i]); err != nil {
			return t, err
		}
		end := now()
		if t.total += limitBatch; end >= from && end < until {
			t.ops += limitBatch
			t.latencies.count(bucketOf(end-underWay[i].sent), limitBatch)
		}
		if end >= until {
			return t, nil
		}
		if err := b.send(&underWay[i]); err != nil {
			return t, err
		}
	}
}

// The numbers of ZooKeeper's operations, and of a request of several.
const (
	createOp    = 1
	deleteOp    = 2
	setDataOp   = 5
	multiOp     = 14
	closeOp     = ^uint32(10) // -11
	multiHeader = 9           // bytes before each operation and result: number, whether it is the end, error
	replyHeader = 16
)

// The name and the data of a node are as long as those of this library's mutex.
var (
	limitName = "/_c_68a050b2-a21a-8ca2-8000-000000000001-lock-"
	limitData = []byte(`{"host":"host","pid":12345,"program":"benchmark"}`)
	openACL   = appendText(appendText(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), zk.PermAll), "world"), "anyone")
)

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// send writes a transaction: creates, deletes of what the batch created before, and a write of the session node.
func (b *batches) send(to *limitTransaction) error {
	number := binary.BigEndian.AppendUint32
	begin := func(f []byte, op uint32) []byte { return number(append(number(f, op), 0), 0) }
	f := number(number(number(b.frame[:0], 0), 1), multiOp)
	for range limitBatch {
		f = appendText(begin(f, createOp), b.directories[b.next%len(b.directories)]+limitName)
		f = append(number(f, uint32(len(limitData))), limitData...)
		f = number(append(f, openACL...), zk.FlagEphemeralSequential)
		b.next++
	}
	for _, path := range to.created {
		f = number(append(begin(f, deleteOp), path...), ^uint32(0))
	}
	f = number(number(appendText(begin(f, setDataOp), b.sessionNode), 0), ^uint32(0))
	f = number(append(number(f, ^uint32(0)), 1), ^uint32(0))
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	b.frame, to.sent = f, now()
	_, err := b.conn.Write(f)
	return err
}

// receive reads the answer to a transaction, and keeps the paths of the nodes, with their lengths in front.
func (b *batches) receive(of *limitTransaction) error {
	answer, err := readFrame(b.reader)
	if err != nil {
		return err
	}
	if code := int32(binary.BigEndian.Uint32(answer[replyHeader-4:])); code != 0 {
		return fmt.Errorf("the transaction fails with code %d", code)
	}
	of.created, answer = of.created[:0], answer[replyHeader:]
	for range limitBatch {
		if op := int32(binary.BigEndian.Uint32(answer)); op != createOp {
			return fmt.Errorf("a create fails with code %d", int32(binary.BigEndian.Uint32(answer[multiHeader:])))
		}
		answer = answer[multiHeader:]
		size := 4 + binary.BigEndian.Uint32(answer)
		of.created, answer = append(of.created, answer[:size]), answer[size:]
	}
	return nil
}

// connect opens a session.
func (b *batches) connect(ctx context.Context, addr string) (err error) {
	var dialer net.Dialer
	if b.conn, err = dialer.DialContext(ctx, "tcp", addr); err != nil {
		return err
	}
	b.reader = bufio.NewReader(b.conn)
	f := make([]byte, 4+4+8+4+8+4+16) // length, version, last zxid, timeout, session, password
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	binary.BigEndian.PutUint32(f[16:], uint32(sessionTimeout.Milliseconds()))
	binary.BigEndian.PutUint32(f[28:], 16)
	if _, err = b.conn.Write(f); err == nil {
		_ = b.conn.SetReadDeadline(time.Now().Add(setUpTime))
		_, err = readFrame(b.reader)
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		b.conn.Close()
	}
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}
