package zkconn

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// ErrAnotherSession is the error of CloseSession if the server does not know the session.
var ErrAnotherSession = errors.New("the server has opened another session rather than resume this one")

// CloseSession resumes a session on a server and closes it, over a connection of its own. It
// returns nil if the server has closed the session or says that the session is over. It blocks
// until then, until ctx ends, or for ConnectTimeout.
func CloseSession(ctx context.Context, cfg *Settings, server string, id int64, password []byte) error {
	return inSession(ctx, cfg, server, id, password, func(w *Conn, session int64) error {
		if err := w.closeSession(); err != nil || session == id {
			return err
		}
		return ErrAnotherSession
	})
}

// inSession resumes a session on a server, or opens one if id is 0, and calls use with the connection,
// which has no other user, and the session's id. If the session to resume is over, it returns nil. It
// blocks until use has returned, until ctx ends, or for ConnectTimeout.
func inSession(ctx context.Context, cfg *Settings, server string, id int64, password []byte, use func(w *Conn, session int64) error) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	deadline, _ := ctx.Deadline()
	var lookups sync.WaitGroup
	defer lookups.Wait()
	defer cancel()
	conn, raw, err := cfg.open(ctx, ctx, &lookups, "tcp", server)
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	w := newConn(conn, raw, nil, deadline)
	// Any server may serve the session. It is to expire early unless it is closed; the server
	// grants more than a millisecond.
	response, err := w.connect(0, time.Millisecond, id, password)
	if err != nil || response.session == 0 {
		return err
	}
	if err := w.login(cfg.Auth); err != nil {
		return err
	}
	return use(w, response.session)
}

// closeSession closes the session of the connection.
func (c *Conn) closeSession() error {
	answer, err := c.exchange(appendInt(appendInt(make([]byte, lengthSize), 1), opClose))
	if err != nil {
		return err
	}
	if err := errorOf(int32(binary.BigEndian.Uint32(answer[lengthSize+xidSize+8:]))); !errors.Is(err, zk.ErrSessionExpired) {
		return err
	}
	return nil
}
