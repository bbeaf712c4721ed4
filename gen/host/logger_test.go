package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/host"
)

// heldLog is a handler that blocks until the test lets each record pass.
type heldLog struct {
	slog.Handler
	pass chan struct{}
}

func (h heldLog) Handle(ctx context.Context, r slog.Record) error {
	<-h.pass
	return h.Handler.Handle(ctx, r)
}

// heldLogger returns a bounded logger that blocks until pass is closed, and its lines.
func heldLogger() (log *slog.Logger, pass chan struct{}, lines *logs) {
	pass, lines = make(chan struct{}), &logs{}
	return host.BoundLogger(slog.New(heldLog{lines.logger().Handler(), pass})), pass, lines
}

// A logger that blocks delays its first record by 100 ms, and the next ones not at all. When it
// goes on, the log has all records, in their order.
func TestBoundLoggerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, pass, lines := heldLogger()
		for i, want := range []time.Duration{100 * time.Millisecond, 0, 0} {
			start := time.Now()
			log.Info(fmt.Sprint("line ", i))
			if took := time.Since(start); took != want {
				t.Errorf("line %d took %v, want %v", i, took, want)
			}
		}
		close(pass)
		synctest.Wait()
		start := time.Now()
		log.With("by", "me").WithGroup("g").Info("line 3", "more", 1)
		if took := time.Since(start); took != 0 || len(lines.lines) != 4 {
			t.Errorf("after %v: %q", took, lines.lines)
		}
		for i, line := range lines.lines {
			if !strings.Contains(line, fmt.Sprintf(`"line %d"`, i)) {
				t.Errorf("line %d is %s", i, line)
			}
		}
		if !strings.Contains(lines.lines[3], "by=me g.more=1") {
			t.Errorf("attributes: %s", lines.lines[3])
		}
	})
}

// AwaitLog waits for the records of a logger that blocks, up to its limit.
func TestAwaitLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, pass, lines := heldLogger()
		waits := func(want time.Duration) {
			t.Helper()
			start := time.Now()
			host.AwaitLog(log, time.Second)
			if waited := time.Since(start); waited != want {
				t.Errorf("waits for %v, not %v", waited, want)
			}
		}
		waits(0)
		log.Error("one")
		log.Error("two")
		waits(time.Second)
		time.AfterFunc(300*time.Millisecond, func() { close(pass) })
		waits(300 * time.Millisecond)
		if !lines.has("two") {
			t.Error("a record is missing")
		}
		waits(0)
		host.AwaitLog(slog.New(slog.DiscardHandler), time.Second)
	})
}

// While the logger blocks, 1,000 records are kept. The log says how many are dropped.
func TestBoundLoggerDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, pass, lines := heldLogger()
		for range 1007 {
			log.Info("line")
		}
		close(pass)
		synctest.Wait()
		if n := len(lines.lines); n != 1001 || !strings.Contains(lines.lines[n-1], "lines=7") {
			t.Errorf("%d lines, the last one %s", n, lines.lines[n-1])
		}
	})
}

// panickingLog panics at each message that is "panic".
type panickingLog struct{ slog.Handler }

func (h panickingLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "panic" {
		panic("in the handler")
	}
	return h.Handler.Handle(ctx, r)
}

// A logger that panics loses the line, and the next line says so.
func TestBoundLoggerThatPanics(t *testing.T) {
	var lines logs
	log := host.BoundLogger(slog.New(panickingLog{lines.logger().Handler()}))
	log.Info("panic")
	log.Info("panic")
	log.Info("all is well")
	if len(lines.lines) != 2 || !strings.Contains(lines.lines[0], "all is well") || !strings.Contains(lines.lines[1], "lines=2") {
		t.Errorf("%q", lines.lines)
	}
}

// longValue is a value whose text is made when it is logged.
type longValue struct{}

func (longValue) LogValue() slog.Value { return slog.StringValue(strings.Repeat("x", 1<<20)) }

// No value makes a line long, and short values stay as they are.
func TestBoundLoggerCutsValues(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	for name, value := range map[string]any{
		"text": long, "error": errors.New(long), "bytes": []byte(long), "texts": []string{long}, "value": longValue{},
		"group": slog.GroupValue(slog.String("inner", long)), "struct": struct{ s string }{long},
	} {
		var lines logs
		log := host.BoundLogger(lines.logger())
		log.Info(name, "value", value)
		log.With("value", value).Info(name)
		log.Info(long)
		for _, line := range lines.lines {
			if len(line) > 5<<10 || !strings.Contains(line, "… (") || !strings.Contains(line, " bytes)") {
				t.Errorf("%s: %d bytes: %.100s", name, len(line), line)
			}
		}
		if len(lines.lines) != 3 {
			t.Errorf("%s: %d lines", name, len(lines.lines))
		}
	}
	var lines logs
	host.BoundLogger(lines.logger()).Info("short", "error", errors.New("why"), "n", 7, "all", []int{1}, "d", time.Second)
	if !lines.has("msg=short error=why n=7 all=[1] d=1s") {
		t.Errorf("%q", lines.lines)
	}
}

// A logger that is bounded already has one queue, and no logger is one that discards all.
func TestBoundLoggerTwice(t *testing.T) {
	var lines logs
	once := host.BoundLogger(lines.logger())
	if host.BoundLogger(once) != once {
		t.Error("a bounded logger is bounded again")
	}
	host.BoundLogger(nil).Error("not seen")
}

// The log of a System's own protoactor system begins at WARN: that reports its start at INFO.
func TestOwnSystemLogsWarnings(t *testing.T) {
	var out bytes.Buffer
	s := host.NewSystem(nil, slog.New(slog.NewTextHandler(&out, nil)))
	s.Actors.Logger().With("a", 1).WithGroup("g").Info("nothing")
	s.Actors.Logger().With("a", 1).Warn("something")
	s.Close()
	if text := out.String(); strings.Contains(text, "INFO") || !strings.Contains(text, "something") {
		t.Errorf("the log is %q", text)
	}
}
