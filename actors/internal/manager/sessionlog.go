package manager

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// sessionLog logs how the session fares, for operators: nothing at a normal start or end. Only the
// bridge's actor uses it.
type sessionLog struct {
	last  messages.SessionState // ENDED before the first session: nothing is said about that
	since time.Time             // of the outage
	lost  uint64                // grants that were lost with a session, when all was well
	left  bool                  // the client has left a lock server, of which it held nothing
}

// logSession logs a new state of the session. It comes before the locks' actors hear of it.
func (m *Manager) logSession(s *messages.SessionChanged) {
	l, log := &m.sessionLog, m.serverLog("session", messages.FormatSession(s.SessionId))
	c := m.Counters()
	lost := c.Lost[messages.Reason_SESSION_LOST]
	switch {
	case s.Epoch == 0 || s.State == messages.SessionState_ENDED:
		return
	case s.State == messages.SessionState_SUSPENDED:
		l.since = time.Now()
		if m.Session.Lost(s.Epoch) {
			break // the process was paused: the holders have stopped by the clock, and LOST follows
		}
		log.Warn("connection to ZooKeeper is lost: holders go on until the deadline, waiters keep their places",
			"held", c.Held, "waiting", c.Waiting, "deadline", m.Session.Session().Deadline, "why", s.Detail,
			"do", "look at "+log.server+" and the network to it")
	case s.State == messages.SessionState_LOST:
		if l.last != messages.SessionState_SUSPENDED {
			l.since = time.Now()
		}
		if l.left = m.Remote != nil && l.last == messages.SessionState_CONNECTED && c.Held == 0 && lost == l.lost; l.left {
			break
		}
		// Some actors may have noticed the loss before, by the clock.
		log.Warn("ZooKeeper session is lost, and with it the locks of all holders: waiters queue again in the next session",
			"held", c.Held+int(lost-l.lost), "waiting", c.Waiting, "since", l.since, "why", s.Detail)
	case l.last == messages.SessionState_SUSPENDED:
		log.Warn("connection to ZooKeeper is back: holders go on, waiters keep their places",
			"held", c.Held, "waiting", c.Waiting, "after", time.Since(l.since).Round(time.Millisecond))
	case l.last == messages.SessionState_LOST && !l.left:
		log.Warn("there is a new ZooKeeper session: waiters queue again, lost locks can be acquired again",
			"waiting", c.Waiting, "after", time.Since(l.since).Round(time.Millisecond))
	}
	l.last = s.State
	if s.State == messages.SessionState_CONNECTED {
		l.lost = lost
	}
}

// serverLog is a log whose lines say ZooKeeper for what the session is with.
type serverLog struct {
	*slog.Logger
	server string
	level  slog.Level // of the lines of Warn
}

func (m *Manager) serverLog(attributes ...any) serverLog {
	log := serverLog{m.Log.With(attributes...), "ZooKeeper", slog.LevelWarn}
	if m.Remote != nil {
		log.server = "lock server"
	} else if !m.wasReady() {
		log.level = slog.LevelInfo
	}
	return log
}

// wasReady reports whether a session has ever been ready for requests. ClickHouse Keeper may end the
// first session of a process before that, at a request that it does not know: nothing is lost then.
func (m *Manager) wasReady() bool {
	noWait, cancel := context.WithCancel(context.Background())
	cancel()
	return m.Bridge.Connected(noWait) == nil
}

// Warn logs the text with the name of the server.
func (l serverLog) Warn(text string, attributes ...any) {
	l.Log(context.Background(), l.level, strings.Replace(text, "ZooKeeper", l.server, 1), attributes...)
}

// Logger returns a logger that cannot stop an actor: of the one of a configuration, or, if that is nil,
// of the warnings and errors of slog.Default.
func Logger(logger *slog.Logger) *slog.Logger {
	if logger != nil {
		return host.BoundLogger(logger)
	}
	return host.BoundLogger(slog.New(warnings{slog.Default().Handler()}))
}

// warnings passes on the records from WARN on.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
