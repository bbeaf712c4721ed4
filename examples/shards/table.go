//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"sync"

	"github.com/actorlock/actorlock/actors"
)

// table is a resource outside of ZooKeeper, with a row for each shard, as a database has it:
//
//	UPDATE shards SET total = total + $amount, next = next + 1 WHERE shard = $shard AND token = $token
//
// Open is the same with SET token = $token WHERE token <= $token. A column CHAR(42) suffices for the
// token: the texts of tokens sort as tokens do.
type table struct {
	listener net.Listener

	mu      sync.Mutex
	rows    []tableRow
	refused int        // requests with an old token
	delayed *lateWrite // nil without one
	conns   map[net.Conn]bool
}

type tableRow struct {
	next  int    // the number of the next message
	total int    // of the amounts of all messages before
	token string // the greatest one that was seen
}

// ConsumerRequest is a request of a consumer.
type ConsumerRequest struct {
	Consumer string
	Shard    int
	Token    string
	Amount   int
}

// serveTable starts a table with an empty row for each shard.
func serveTable(shards int) (*table, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &table{listener: listener, rows: make([]tableRow, shards), conns: map[net.Conn]bool{}}
	server := rpc.NewServer()
	if err := server.RegisterName("Table", rows{t}); err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.mu.Lock()
			t.conns[conn] = true
			t.mu.Unlock()
			go server.ServeConn(conn)
		}
	}()
	return t, nil
}

func (t *table) addr() string { return t.listener.Addr().String() }

func (t *table) close() {
	t.listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.conns {
		conn.Close()
	}
}

// rows has the methods that consumers call.
type rows struct{ table *table }

// Open has the row refuse all earlier tokens, and returns the number of the next message.
func (r rows) Open(request ConsumerRequest, next *int) error {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	row := &r.table.rows[request.Shard]
	if request.Token < row.token {
		r.table.refused++
		return fmt.Errorf("token %s is older than %s", request.Token, row.token)
	}
	row.token, *next = request.Token, row.next
	return nil
}

// Add adds the amount of the next message, and returns the number of the one behind it.
func (r rows) Add(request ConsumerRequest, next *int) (err error) {
	if late := r.table.takeDelayed(request.Consumer); late != nil {
		defer func() { late.done <- err }()
		close(late.sent)
		<-late.arrived
	}
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	row := &r.table.rows[request.Shard]
	if request.Token != row.token {
		r.table.refused++
		return fmt.Errorf("token %s is older than %s", request.Token, row.token)
	}
	row.total += request.Amount
	row.next++
	*next = row.next
	return nil
}

// lateWrite is a write that takes long to arrive.
type lateWrite struct {
	consumer string
	sent     chan struct{} // closed when the consumer has sent it
	arrived  chan struct{}
	arrive   func()
	done     chan error
}

// delay has the next write of a consumer arrive late.
func (t *table) delay(consumer string) *lateWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := &lateWrite{consumer: consumer, sent: make(chan struct{}), arrived: make(chan struct{}), done: make(chan error, 1)}
	late.arrive = sync.OnceFunc(func() { close(late.arrived) })
	t.delayed = late
	return late
}

func (t *table) takeDelayed(consumer string) *lateWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.delayed
	if late == nil || late.consumer != consumer {
		return nil
	}
	t.delayed = nil
	return late
}

// outcome returns why the table has refused the write. Its error is that the table has not.
func (l *lateWrite) outcome(ctx context.Context) (refused, err error) {
	select {
	case refused = <-l.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if refused == nil {
		return nil, fmt.Errorf("the table has accepted a late write of %s", l.consumer)
	}
	return refused, nil
}

// check returns how many messages had an effect, and an error if one of them had two or none.
func (t *table) check() (messages int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for shard, row := range t.rows {
		want := 0
		for number := range row.next {
			want += message(shard, number)
		}
		if row.total != want {
			return 0, fmt.Errorf("shard %d has the total %d after %d messages, want %d", shard, row.total, row.next, want)
		}
		if _, err := actors.ParseToken(row.token); err != nil {
			return 0, fmt.Errorf("shard %d: %w", shard, err)
		}
		messages += row.next
	}
	return messages, nil
}
