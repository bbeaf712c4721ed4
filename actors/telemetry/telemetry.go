package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// scope names the instruments and spans of this package.
const scope = "github.com/actorlock/actorlock/actors/telemetry"

// Option sets something for a Monitor.
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	label   func(path string) string
}

// Meters has the metrics reported by a provider other than the global one.
func Meters(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// Tracers has the traces reported by a provider other than the global one.
func Tracers(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// Label adds the attribute lock.path to durations and spans, with what f returns for the lock's
// path, unless that is "". The locks' actors call f, which must not block, and should return few
// values. A multi-lock's path names all of its members.
func Label(f func(path string) string) Option { return func(c *config) { c.label = f } }

// New returns a Monitor for the field Monitor of actors.Config. It may serve several Locks, whose
// numbers it adds up. The errors are those of the provider's instruments.
func New(options ...Option) (actors.Monitor, error) {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider(), label: func(string) string { return "" }}
	for i, o := range options {
		if o == nil {
			return nil, fmt.Errorf("telemetry: option %d of %d is nil: leave it out", i+1, len(options))
		}
		o(&c)
	}
	if c.meters == nil || c.tracers == nil || c.label == nil {
		return nil, errors.New("telemetry: the argument of Meters, Tracers or Label is nil: leave the option out")
	}
	m := &monitor{tracer: c.tracers.Tracer(scope), label: c.label, stats: map[int]func() actors.Stats{},
		over: actors.Stats{Lost: map[error]uint64{}, Refused: map[error]uint64{}}}
	return m, m.makeInstruments(c.meters.Meter(scope))
}

// monitor is an actors.Monitor.
type monitor struct {
	tracer  trace.Tracer
	label   func(path string) string
	acquire metric.Float64Histogram
	hold    metric.Float64Histogram
	batch   metric.Int64Histogram

	mu    sync.Mutex
	stats map[int]func() actors.Stats // of the Locks that are open, by their number
	last  int
	over  actors.Stats // sums of the Locks that are closed: counters must not go back
}

// Start implements actors.Monitor.
func (m *monitor) Start(stats func() actors.Stats) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	number := m.last
	m.stats[number] = stats
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.stats, number)
		add(&m.over, stats())
	}
}

// Batch implements actors.Monitor.
func (m *monitor) Batch(operations int) { m.batch.Record(context.Background(), int64(operations)) }

// Request implements actors.Monitor.
func (m *monitor) Request(ctx context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	q := &requestMonitor{monitor: m, ctx: ctx}
	q.attributes = append(q.attributes, attribute.String("recipe", r.Recipe), attribute.String("kind", r.Kind))
	if label := m.label(r.Path); label != "" {
		q.attributes = append(q.attributes, attribute.String("lock.path", label))
	}
	_, q.span = m.tracer.Start(ctx, "actorlock.acquire", trace.WithAttributes(q.attributes...))
	return q
}

// requestMonitor is an actors.RequestMonitor.
type requestMonitor struct {
	monitor    *monitor
	ctx        context.Context // until the grant
	attributes []attribute.KeyValue
	span       trace.Span // of the wait, then of the hold
}

// Granted implements actors.RequestMonitor.
func (q *requestMonitor) Granted(waited time.Duration, token actors.Token) {
	q.record(q.monitor.acquire, waited, "acquired")
	q.span.End()
	_, q.span = q.monitor.tracer.Start(q.ctx, "actorlock.hold", trace.WithAttributes(q.attributes...),
		trace.WithAttributes(attribute.String("actorlock.token", token.String())))
	q.ctx = nil
}

// Refused implements actors.RequestMonitor.
func (q *requestMonitor) Refused(waited time.Duration, err error) {
	q.end(q.monitor.acquire, waited, err)
}

// Ended implements actors.RequestMonitor.
func (q *requestMonitor) Ended(held time.Duration, err error) { q.end(q.monitor.hold, held, err) }

func (q *requestMonitor) end(h metric.Float64Histogram, d time.Duration, err error) {
	outcome := "released"
	if err != nil {
		outcome = reason(err)
		q.span.SetStatus(codes.Error, err.Error())
	}
	q.record(h, d, outcome)
	q.span.End()
}

func (q *requestMonitor) record(h metric.Float64Histogram, d time.Duration, outcome string) {
	with := attribute.String("outcome", outcome)
	h.Record(context.Background(), d.Seconds(), metric.WithAttributes(q.attributes...), metric.WithAttributes(with))
	q.span.SetAttributes(with)
}

// reason returns the name of an error of package actors in small letters.
func reason(err error) string {
	r := messages.Reason_CANCELLED // whose error is not the reason itself
	errors.As(err, &r)
	return strings.ToLower(r.String())
}
