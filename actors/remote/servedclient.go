package remote

import (
	"errors"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Receive implements host.Actor.
func (c *servedClient) Receive(_ ask.Recipient, msg any) {
	if !c.over && c.lease.Ended(c.now()) {
		why := "the client has not renewed it in time"
		if c.draining {
			why = "the lock server drains, and the client has not released"
		}
		c.endLease(messages.Reason_SESSION_LOST, why)
	}
	switch msg := msg.(type) {
	case frameReceived:
		leave := func() { <-msg.stream.room }
		if c.onFrame(msg.stream, msg.frame) {
			leave()
		} else {
			time.AfterFunc(renewalPause, leave)
		}
	case answered:
		c.onAnswered(msg)
	case turn:
		c.onTurn()
	case attached:
		c.onAttached(msg)
	case detached:
		if c.stream == msg.stream {
			c.stream = nil
			if c.lease.Count() == 0 { // the client believes in nothing, and has nothing to resume
				c.endLease(messages.Reason_SESSION_LOST, "the client has gone before the lease was granted")
			}
		}
	case halfClosed:
		if c.stream != msg.stream {
			msg.stream.close()
		} else if !c.over {
			c.stream.cutOff()
			c.stream = nil
		}
	case sessionState:
		c.onSessionState(msg.state)
	case answerTo:
		c.onAnswer(msg)
	case leaseLetGo:
		c.lease.LetGo()
		c.endLease(messages.Reason_SESSION_LOST, "the client has let go of it")
	case leaseTimer:
		if !c.over || c.lease.Believed(c.now()) {
			c.startTimer() // the clocks of the timer and of the lease differ
		}
	case drain:
		c.drain()
	case renewNoMore:
		c.lease.Drain()
	case closeDown:
		c.closeDown()
	case describe:
		msg.to <- c.describe()
	}
	c.stopIfDone()
}

// onAttached begins a stream of the client.
func (c *servedClient) onAttached(a attached) {
	if c.over || c.behind {
		why := "the lease is over"
		if c.behind {
			why = notRead
		}
		a.stream.end(messages.Reason_SESSION_LOST, why)
		return
	}
	if c.stream != nil {
		c.stream.cutOff()
	}
	resumed := c.timer != nil
	c.stream = a.stream
	c.lease.Resume()
	c.messages.restart()
	c.stream.frames.put(&messages.ServerFrame{Received: c.messages.delivered, Welcome: &messages.Welcome{Lease: c.id, Resumed: resumed,
		Incarnation: c.server.incarnation, UpNanos: int64(c.now() - c.server.began), AwaitsNodes: true, State: c.server.suspended.Load()}})
	if c.draining {
		c.stream.frames.put(&messages.ServerFrame{GoAway: true})
	}
	c.startTimer()
	if resumed || a.first.Hello.Lease == 0 { // otherwise its numbers are of the lease that it wanted
		c.take(a.first) // its Received says what a former stream has brought to the client
	}
	c.Flush()
}

// startTimer has the actor look at the lease when it may have ended.
func (c *servedClient) startTimer() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(max(c.lease.End()-c.now(), time.Millisecond), func() { c.self.Tell(leaseTimer{}) })
}

// onFrame handles a frame of the client, and reports whether the next one may come at once.
func (c *servedClient) onFrame(stream *serverStream, f *messages.ClientFrame) bool {
	if c.stream != stream {
		return true
	}
	if c.over {
		if f.Bye {
			c.lease.LetGo()
		}
		return true
	}
	if f.Hello != nil {
		c.cutOff("the client breaks the protocol", errors.New("a Hello comes behind the first frame"))
		return true
	}
	return c.take(f)
}

// take handles all of a frame of the present stream but its Hello. It reports whether the frame has no
// renewal too many.
func (c *servedClient) take(f *messages.ClientFrame) bool {
	seen, err := c.messages.accept(f.Received, f.First, len(f.Messages))
	if err != nil {
		c.cutOff("the client breaks the protocol", err)
		return true
	}
	c.answers.confirm(f.Received)
	c.sendAnswers()
	for _, m := range f.Messages[seen:] {
		c.onMessage(m)
	}
	inTime := f.Renew == nil || c.onRenew(f.Renew)
	if f.Bye {
		c.lease.LetGo()
		c.endLease(0, "")
	}
	c.endIfBehind() // before the next frame: each has up to maxFrameObjects messages
	return inTime
}

// cutOff ends the stream. The lease goes on: the client may resume it.
func (c *servedClient) cutOff(why string, err error) {
	c.server.warn("lock server ends the stream of a client", "client", c.text(), "why", why, "error", err, "do", "look at the client")
	c.stream.cutOff()
	c.stream = nil
}

// onRenew answers a renewal if the server may promise something. It reports whether the client renews no
// more often than it may.
func (c *servedClient) onRenew(r *messages.Renew) bool {
	bridge := c.server.manager.Bridge
	epoch := bridge.Session().Epoch
	if c.epoch != 0 && c.epoch != epoch {
		c.endLease(messages.Reason_SESSION_LOST, "the ZooKeeper session of the lock server is lost")
		return true
	}
	now := c.now() // before the bridge reads its clock, so that the count is not too low
	if !c.renewals.take(now, min(renewalPause, c.server.cfg.Lease/(4*renewalsInTime))) {
		return false
	}
	v := bridge.Promise(epoch, c.server.cfg.Lease)
	if v > 0 {
		c.epoch = epoch
	}
	answer := &messages.ServerFrame{Received: c.messages.delivered} // without a promise it shows that the connection works
	late := c.lease.Count() > 0 && c.lease.End()-now < v/2
	if c.lease.Renew(now, r.Number, r.Got, v) {
		if late {
			c.server.counts.lateRenewals.Add(1)
		}
		answer.Renewed = &messages.Renewed{Number: r.Number, ForNanos: int64(v)}
	}
	c.stream.frames.put(answer)
	c.startTimer()
	return true
}

func (c *servedClient) onSessionState(now *messages.State) {
	session := c.server.manager.Session.Session()
	if c.epoch != 0 && (session.Epoch != c.epoch || session.State == messages.SessionState_LOST) {
		c.endLease(messages.Reason_SESSION_LOST, "the ZooKeeper session of the lock server is lost: "+now.Detail)
		return
	}
	if c.stream != nil {
		c.stream.frames.put(&messages.ServerFrame{State: now})
	}
}

// notRead is why a client that is behind has lost its lease.
const notRead = "the client does not read what the server sends"

func (c *servedClient) isBehind() bool {
	messages, bytes := len(c.messages.pending), c.messages.bytes
	return messages > maxBehind || bytes > maxBytesBehind || c.group.isBehind(messages) || c.stream != nil && c.stream.frames.waiting() > maxFramesBehind
}

// endIfBehind has a client that is behind get nothing more. What it holds it keeps until its lease is over.
func (c *servedClient) endIfBehind() {
	if c.stopped {
		return
	}
	c.countPending(len(c.messages.pending), c.messages.bytes)
	if c.behind || !c.isBehind() {
		return
	}
	c.behind = true
	c.lease.Drain()
	for _, q := range c.questions {
		c.withdraw(q)
	}
	if c.stream != nil {
		c.server.counts.countRefusal(LimitPending)
		c.cutOff(notRead, nil)
	}
	c.messages = numbered[*messages.ServerMessage]{delivered: c.messages.delivered}
	c.countPending(0, 0)
}

// Flush implements host.Collector.
func (c *servedClient) Flush() {
	c.endIfBehind()
	for c.stream != nil && c.messages.unsent() {
		if c.stream.frames.extend(c.extend) {
			continue
		}
		if !c.stream.frames.hasRoom(func() { c.self.Tell(writable{}) }) {
			return
		}
		first, all := c.messages.nextFrame()
		c.stream.frames.put(&messages.ServerFrame{Received: c.messages.delivered, First: first, Messages: all})
	}
}

// extend puts messages into a frame that has some, and reports whether it has.
func (c *servedClient) extend(last *messages.ServerFrame) bool {
	has := len(last.Messages)
	if has == 0 {
		return false
	}
	last.Received = c.messages.delivered
	last.Messages = c.messages.extend(last.First, last.Messages)
	return len(last.Messages) > has
}

// onMessage handles a numbered message of the client.
func (c *servedClient) onMessage(m *messages.ClientMessage) {
	switch m := m.GetWhat().(type) {
	case *messages.ClientMessage_Acquire:
		c.acquire(m.Acquire)
	case *messages.ClientMessage_Cancel:
		switch r := c.requests[m.Cancel.GetRequestId()]; {
		case r != nil:
			if !c.confirmLost(r) {
				c.cancel(r, m.Cancel.GetAwaitNode())
			}
		case c.draining && m.Cancel.GetAwaitNode(): // of a request that was not taken
			c.refuse(m.Cancel.GetRequestId(), messages.Reason_CANCELLED, "")
		} // otherwise the last answer is under way
	case *messages.ClientMessage_HoldExpired:
		if r := c.requests[m.HoldExpired]; r != nil && !c.confirmLost(r) {
			c.takeBack(r, messages.Reason_HOLD_EXPIRED)
		}
	case *messages.ClientMessage_Release:
		if r := c.requests[m.Release.GetRequestId()]; r != nil && !c.confirmLost(r) && r.granted != nil && !r.over {
			r.released = true
			c.endInTurn(r, &messages.Release{})
		}
	case *messages.ClientMessage_Question:
		c.question(m.Question)
	case *messages.ClientMessage_Withdraw:
		if q := c.questions[m.Withdraw]; q != nil {
			c.withdraw(q)
		}
	}
}
