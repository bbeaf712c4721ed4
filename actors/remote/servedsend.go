package remote

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/actorlock/actorlock/messages"
)

func (c *servedClient) now() time.Duration { return c.server.manager.Session.Now() }

func (c *servedClient) text() string {
	return fmt.Sprintf("%s %s %s (client %d)", c.peer.Name, c.peer.Address, c.name, c.number)
}

// allow returns why the client may not do that with one of the locks, as NO_AUTH, or as INTERNAL if Allow
// panics, or nil. Any goroutine may call it.
func (c *servedClient) allow(verb Verb, paths ...string) error {
	if c.server.cfg.Allow == nil {
		return nil
	}
	for _, path := range paths {
		if err := c.askAllow(path, verb); err != nil {
			return err
		}
	}
	return nil
}

// askAllow calls ServerConfig.Allow. A panic of it must not end the client's actor, or the process: all that
// the client holds would be lost, and its next lease would ask for the same.
func (c *servedClient) askAllow(path string, verb Verb) (refused error) {
	defer func() {
		if failure := recover(); failure != nil {
			c.server.logLimited(slog.LevelError, "Allow of a lock server panics, and the call of the client is refused", "client", c.text(), "path", path, "verb", verb,
				"failure", failure, "stack", string(debug.Stack()), "do", "correct Allow")
			refused = &messages.Refused{Reason: messages.Reason_INTERNAL, Detail: "Allow of the lock server has failed: see its log"}
		}
	}()
	if err := c.server.cfg.Allow(c.peer, path, verb); err != nil {
		return &messages.Refused{Reason: messages.Reason_NO_AUTH, Detail: err.Error()}
	}
	return nil
}

// send sends a numbered message.
func (c *servedClient) send(m *messages.ServerMessage) {
	if c.behind {
		return
	}
	err := c.messages.add(m)
	if err == nil {
		return
	}
	if err = c.messages.add(withReadableTexts(m)); err != nil {
		c.server.log.Error("a message to a client cannot be sent", "client", c.text(), "error", err, "do", "report it")
	}
}

// tell sends a message about a request that the client has not cancelled.
func (c *servedClient) tell(r *servedRequest, m *messages.ServerMessage) {
	if !r.over && !c.over {
		c.send(m)
	}
}

func (c *servedClient) refuse(number uint64, reason messages.Reason, detail string) {
	c.send(refusedMessage(number, reason, detail))
}

func refusedMessage(number uint64, reason messages.Reason, detail string) *messages.ServerMessage {
	return &messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: number, Reason: reason, Detail: detail}}}
}

// countPending counts the messages and bytes that the client has not confirmed, for all clients and for those of
// its peer.
func (c *servedClient) countPending(messages, bytes int) {
	if messages != c.counted.messages || bytes != c.counted.bytes {
		c.server.counts.pendingMessages.Add(int64(messages - c.counted.messages))
		c.server.counts.pendingBytes.Add(int64(bytes - c.counted.bytes))
		c.group.pending.Add(int64(messages - c.counted.messages))
		c.group.pendingBytes.Add(int64(bytes - c.counted.bytes))
		c.counted.messages, c.counted.bytes = messages, bytes
	}
}
