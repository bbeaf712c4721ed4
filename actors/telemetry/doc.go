// Package telemetry has locks report OpenTelemetry metrics and traces. It is a module of its own,
// so that programs without it link nothing of it:
//
//	monitor, err := telemetry.New() // by the global providers
//	locks, err := actors.Connect(ctx, servers, actors.Config{Monitor: monitor})
//
// Metrics, whose attributes never have the path or the owner of a lock:
//
//	actorlock.acquire.duration  histogram, s   how long requests wait: recipe, kind, outcome
//	actorlock.hold.duration     histogram, s   how long locks are held, until ZooKeeper has confirmed the release: recipe, kind, outcome
//	actorlock.waiting           gauge          requests that wait
//	actorlock.held              gauge          grants that hold, or whose release ZooKeeper has not confirmed
//	actorlock.lost              counter        grants that were lost, also before ZooKeeper had confirmed the release: reason
//	actorlock.refused           counter        requests that were never granted: reason
//	actorlock.handoff           counter        locks passed on: scope is local or remote
//	actorlock.batch.size        histogram      creates and deletes in one transaction
//	actorlock.session.state     gauge          1 for the present state: state
//	actorlock.session.changes   counter        sessions that became suspended or lost: state
//
// The counters exist from 0 on, for each reason, so that a rate sees the first increase; an outage
// between two readings shows in the changes of the session alone.
//
// With Prometheus (go.opentelemetry.io/otel/exporters/prometheus and
// go.opentelemetry.io/otel/sdk/metric):
//
//	exporter, err := prometheus.New() // for the default registry of Prometheus
//	meters := metric.NewMeterProvider(metric.WithReader(exporter))
//	monitor, err := telemetry.New(telemetry.Meters(meters))
//	locks, err := actors.Connect(ctx, servers, actors.Config{Monitor: monitor})
//	http.Handle("/metrics", promhttp.Handler())
//
// The outcome of an acquire is acquired or a reason; the outcome of a hold is released or a reason.
// lock.proto has the reasons, which stand here in small letters: timed_out, session_lost. A lock's
// path becomes an attribute only as what the user's [Label] makes of it: a path with an id in it
// would make a series of its own for each lock.
//
// Traces: the span "actorlock.acquire" lasts from a request to its grant or refusal, and
// "actorlock.hold" from the grant to its end. Both are children of the span in the context that was
// passed to Acquire or Lock. The requests of actors have no context and begin traces of their own.
//
// dashboard.json is a Grafana dashboard of these metrics, as Prometheus names them.
package telemetry
