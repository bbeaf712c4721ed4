package zkconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// CloseSession closes the other session that a server opens in place of one that it does not know.
func TestServerOpensAnotherSession(t *testing.T) {
	closed := make(chan bool, 1)
	serve := func(conn net.Conn) {
		c := newConn(conn, conn, nil, time.Now().Add(timeLimit))
		if _, err := c.readFrame(); err != nil {
			t.Error(err)
		}
		conn.Write([]byte("\x00\x00\x00\x25\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x10abcdefghijklmnop\x00"))
		head := make([]byte, headerSize)
		n, _ := conn.Read(head)
		closed <- n == headerSize && string(head[lengthSize+xidSize:]) == "\xff\xff\xff\xf5"
		conn.Write(append([]byte("\x00\x00\x00\x10\x00\x00\x00\x01"), make([]byte, 12)...))
	}
	dial := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
	err := CloseSession(context.Background(), &Settings{ConnectTimeout: timeLimit, Dial: dial}, "other:1", 6, []byte("secret"))
	if !errors.Is(err, ErrAnotherSession) || !<-closed {
		t.Errorf("%v", err)
	}
}
