package telemetry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// station is a server, and Locks on it with a Monitor.
type station struct {
	*testing.T
	monitor actors.Monitor
	locks   *actors.Locks
	server  *embedded.Server
	reader  sdkmetric.Reader
	spans   *tracetest.SpanRecorder
	tracer  *sdktrace.TracerProvider
}

func start(t *testing.T, reader sdkmetric.Reader, options ...Option) *station {
	t.Helper()
	s := &station{T: t, reader: reader, spans: tracetest.NewSpanRecorder()}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	var err error
	s.monitor, err = New(append([]Option{Meters(meters), Tracers(s.tracer)}, options...)...)
	s.must(err)
	s.server, err = embedded.Start(embedded.ServerConfig{})
	s.must(err)
	t.Cleanup(func() { s.server.Close() })
	s.locks, err = actors.Connect(t.Context(), s.server.Addr(), actors.Config{Monitor: s.monitor})
	s.must(err)
	t.Cleanup(func() { s.locks.Close() })
	return s
}

func (s *station) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *station) lock(mu interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}, options ...actors.Option) *actors.Grant {
	s.Helper()
	g, err := mu.Lock(s.Context(), options...)
	s.must(err)
	return g
}

// metrics returns the number of each series, or the count of a histogram, as "name{attributes}".
func (s *station) metrics() map[string]int64 {
	s.Helper()
	var all metricdata.ResourceMetrics
	s.must(s.reader.(*sdkmetric.ManualReader).Collect(context.Background(), &all))
	numbers := map[string]int64{}
	for _, in := range all.ScopeMetrics {
		for _, m := range in.Metrics {
			series := func(a attribute.Set, n int64) {
				numbers[m.Name+"{"+a.Encoded(attribute.DefaultEncoder())+"}"] = n
			}
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					series(p.Attributes, int64(p.Count))
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					series(p.Attributes, int64(p.Count))
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					series(p.Attributes, p.Value)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					series(p.Attributes, p.Value)
				}
			}
		}
	}
	return numbers
}

func (s *station) expect(want map[string]int64) {
	s.Helper()
	got := s.metrics()
	for name, n := range want {
		if got[name] != n {
			s.Errorf("%s is %d, want %d; all: %v", name, got[name], n, got)
		}
	}
}

// Each metric has what happened, by the names and attributes that are promised.
func TestMetrics(t *testing.T) {
	s := start(t, sdkmetric.NewManualReader())
	mu, rw := s.locks.Mutex("/m", actors.LocalQueue(actors.LocalQueueConfig{})), s.locks.RWMutex("/rw")
	g := s.lock(mu)
	waiting := mu.Acquire(t.Context())
	if _, err := mu.Lock(t.Context(), actors.Try()); err == nil {
		t.Error("a try is granted")
	}
	s.expect(map[string]int64{
		"actorlock.waiting{}": 1, "actorlock.held{}": 1, "actorlock.refused{reason=not_acquired}": 1,
		"actorlock.acquire.duration{kind=exclusive,outcome=acquired,recipe=mutex}":     1,
		"actorlock.acquire.duration{kind=exclusive,outcome=not_acquired,recipe=mutex}": 1,
		"actorlock.session.state{state=connected}":                                     1,
		"actorlock.session.state{state=suspended}":                                     0,
	})
	all := s.metrics()
	for _, name := range []string{"lost{reason=session_lost}", "lost{reason=node_deleted}", "lost{reason=closed}", "lost{reason=hold_expired}", "lost{reason=internal}",
		"refused{reason=session_lost}", "refused{reason=timed_out}", "refused{reason=cancelled}", "session.changes{state=suspended}", "session.changes{state=lost}",
		"handoff{scope=local}", "handoff{scope=remote}"} {
		if n, is := all["actorlock."+name]; !is || n != 0 {
			t.Errorf("%s is %d, %v: a counter must be there from 0 on", name, n, is)
		}
	}
	s.must(g.Unlock(t.Context()))
	next, err := waiting.Result()
	s.must(err)
	s.must(next.Unlock(t.Context()))
	expires := s.lock(rw.Read(), actors.HoldAtMost(10*time.Millisecond))
	<-expires.Done()
	cancelled := rw.Write().Acquire(t.Context())
	cancelled.Cancel() // before or after its grant: the Drain below waits for either
	held := s.lock(s.locks.Semaphore("/s", 2))
	s.must(held.Unlock(t.Context()))
	s.must(s.locks.Drain(t.Context()))
	s.expect(map[string]int64{
		"actorlock.waiting{}": 0, "actorlock.held{}": 0, "actorlock.lost{reason=hold_expired}": 1, "actorlock.handoff{scope=local}": 1,
		"actorlock.hold.duration{kind=exclusive,outcome=released,recipe=mutex}":     2,
		"actorlock.hold.duration{kind=read,outcome=hold_expired,recipe=read-write}": 1,
		"actorlock.acquire.duration{kind=permit,outcome=acquired,recipe=semaphore}": 1,
	})
	if n := s.metrics()["actorlock.batch.size{}"]; n == 0 || uint64(n) != s.locks.Stats().Batches {
		t.Errorf("%d batches, of %d", n, s.locks.Stats().Batches)
	}
	s.must(s.locks.Close())
	s.expect(map[string]int64{"actorlock.lost{reason=hold_expired}": 1, "actorlock.session.state{state=connected}": 0})
}

// The attribute lock.path is the user's label, and is missing without one.
func TestLabel(t *testing.T) {
	s := start(t, sdkmetric.NewManualReader(), Label(func(path string) string {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		return strings.TrimSuffix(first, "secret")
	}))
	for _, path := range []string{"/orders/1", "/orders/2", "/secret"} {
		s.must(s.lock(s.locks.Mutex(path)).Unlock(t.Context()))
	}
	s.expect(map[string]int64{
		"actorlock.hold.duration{kind=exclusive,lock.path=orders,outcome=released,recipe=mutex}": 2,
		"actorlock.hold.duration{kind=exclusive,outcome=released,recipe=mutex}":                  1,
	})
	for _, span := range s.spans.Ended() {
		if strings.Contains(fmt.Sprint(span.Attributes()), "/") {
			t.Errorf("%s has %v", span.Name(), span.Attributes())
		}
	}
}

// A wait and a hold are spans below the span of the context, of any recipe.
func TestTraces(t *testing.T) {
	s := start(t, sdkmetric.NewManualReader())
	for name, mu := range map[string]interface {
		Lock(context.Context, ...actors.Option) (*actors.Grant, error)
	}{
		"mutex": s.locks.Mutex("/m"),
		"local": s.locks.Mutex("/l", actors.LocalQueue(actors.LocalQueueConfig{})),
		"multi": s.locks.MultiLock(s.locks.Mutex("/m1"), s.locks.Mutex("/m2")),
	} {
		s.spans.Reset()
		ctx, parent := s.tracer.Tracer("test").Start(t.Context(), "work")
		g, err := mu.Lock(ctx)
		s.must(err)
		if _, err := mu.Lock(ctx, actors.Try()); err == nil {
			t.Errorf("%s: a try is granted", name)
		}
		s.must(g.Unlock(ctx))
		parent.End()
		var got []string
		for _, span := range s.spans.Ended() {
			if span.Name() == "work" {
				continue
			}
			if span.Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("%s: %s is no child of the context's span", name, span.Name())
			}
			got = append(got, fmt.Sprintf("%s %v %v", span.Name(), attributeOf(span, "outcome"), span.Status().Code))
		}
		slices.Sort(got)
		want := []string{"actorlock.acquire acquired Unset", "actorlock.acquire not_acquired Error", "actorlock.hold released Unset"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func attributeOf(span sdktrace.ReadOnlySpan, key string) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// One Monitor may serve several Locks: it adds their numbers, and counters never go back.
func TestSeveralLocks(t *testing.T) {
	s := start(t, sdkmetric.NewManualReader())
	other, err := actors.Connect(t.Context(), s.server.Addr(), actors.Config{Monitor: s.monitor})
	s.must(err)
	defer other.Close()
	defer s.lock(other.Mutex("/other")).Release()
	s.lock(s.locks.Mutex("/m"))
	s.expect(map[string]int64{"actorlock.held{}": 2, "actorlock.session.state{state=connected}": 2})
	if _, err := s.locks.Mutex("/m").Lock(t.Context(), actors.Try()); err == nil {
		t.Error("a try is granted")
	}
	s.must(s.locks.Close())
	s.expect(map[string]int64{"actorlock.lost{reason=closed}": 1, "actorlock.refused{reason=not_acquired}": 1, "actorlock.held{}": 1,
		"actorlock.session.state{state=connected}": 1})
}

// Unacceptable options are errors that say so.
func TestOptions(t *testing.T) {
	for _, o := range []Option{nil, Meters(nil), Tracers(nil), Label(nil)} {
		if _, err := New(o); err == nil {
			t.Error("accepted")
		}
	}
	if _, err := New(); err != nil {
		t.Error(err)
	}
}

// An outage that is over before the metrics are read has been counted.
func TestSessionChanges(t *testing.T) {
	s := start(t, sdkmetric.NewManualReader())
	lost := s.lock(s.locks.Mutex("/m"))
	sessions := s.locks.Sessions(t.Context())
	for _, session := range s.server.Sessions() {
		s.server.Expire(session.ID)
	}
	for now := range sessions {
		if now.State == messages.SessionState_CONNECTED && s.locks.Stats().SessionsLost > 0 {
			break
		}
	}
	<-lost.Done()
	for s.locks.Stats().Lost[actors.ErrSessionLost] == 0 { // the lock's actor counts it on its own
		time.Sleep(time.Millisecond)
	}
	s.expect(map[string]int64{"actorlock.session.changes{state=lost}": 1, "actorlock.session.state{state=connected}": 1, "actorlock.lost{reason=session_lost}": 1})
}
