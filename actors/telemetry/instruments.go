package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// The limits of the histograms: an acquire takes from microseconds, with a local queue, to minutes, and
// many waits end by a time-out of some whole seconds, just above which there is a limit; a transaction
// has up to 128 operations.
var (
	durations  = []float64{1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.1, 2.5, 4, 5, 5.5, 7.5, 10, 11, 15, 20, 30, 33, 60, 66, 300, 1800}
	batchSizes = []float64{1, 2, 4, 8, 16, 32, 64, 96, 128}
)

// states are the names of a session's states.
var states = map[messages.SessionState]string{messages.SessionState_CONNECTED: "connected",
	messages.SessionState_SUSPENDED: "suspended", messages.SessionState_LOST: "lost"}

// makeInstruments makes the instruments of the monitor, and has the observable ones read Stats.
func (m *monitor) makeInstruments(meter metric.Meter) error {
	var errs [11]error
	m.acquire, errs[0] = meter.Float64Histogram("actorlock.acquire.duration", metric.WithUnit("s"),
		metric.WithDescription("How long requests for locks wait."), metric.WithExplicitBucketBoundaries(durations...))
	m.hold, errs[1] = meter.Float64Histogram("actorlock.hold.duration", metric.WithUnit("s"),
		metric.WithDescription("How long locks are held."), metric.WithExplicitBucketBoundaries(durations...))
	m.batch, errs[2] = meter.Int64Histogram("actorlock.batch.size", metric.WithUnit("{operation}"),
		metric.WithDescription("Creates and deletes of nodes in one transaction."), metric.WithExplicitBucketBoundaries(batchSizes...))
	waiting, err := meter.Int64ObservableGauge("actorlock.waiting", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that wait for a lock."))
	errs[3] = err
	held, err := meter.Int64ObservableGauge("actorlock.held", metric.WithUnit("{grant}"), metric.WithDescription("Grants that hold a lock."))
	errs[4] = err
	lost, err := meter.Int64ObservableCounter("actorlock.lost", metric.WithUnit("{grant}"),
		metric.WithDescription("Grants that ended without a release that ZooKeeper has confirmed."))
	errs[5] = err
	refused, err := meter.Int64ObservableCounter("actorlock.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were never granted."))
	errs[6] = err
	handOff, err := meter.Int64ObservableCounter("actorlock.handoff", metric.WithUnit("{grant}"),
		metric.WithDescription("Locks that passed to a waiter of this process, from this process or from another."))
	errs[7] = err
	state, err := meter.Int64ObservableGauge("actorlock.session.state", metric.WithUnit("{session}"),
		metric.WithDescription("Sessions with ZooKeeper that are in a state."))
	errs[8] = err
	changes, err := meter.Int64ObservableCounter("actorlock.session.changes", metric.WithUnit("{change}"),
		metric.WithDescription("How often a session with ZooKeeper, or a lease, became suspended or was lost."))
	errs[10] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	_, errs[9] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		sum, sessions := m.sum()
		o.ObserveInt64(waiting, int64(sum.Waiting))
		o.ObserveInt64(held, int64(sum.Held))
		observeReasons(o, lost, sum.Lost, lostReasons)
		observeReasons(o, refused, sum.Refused, refusedReasons)
		o.ObserveInt64(changes, int64(sum.Suspensions), metric.WithAttributes(attribute.String("state", "suspended")))
		o.ObserveInt64(changes, int64(sum.SessionsLost), metric.WithAttributes(attribute.String("state", "lost")))
		o.ObserveInt64(handOff, int64(sum.LocalHandOffs), metric.WithAttributes(attribute.String("scope", "local")))
		o.ObserveInt64(handOff, int64(sum.RemoteHandOffs), metric.WithAttributes(attribute.String("scope", "remote")))
		for s, name := range states {
			o.ObserveInt64(state, sessions[s], metric.WithAttributes(attribute.String("state", name)))
		}
		return nil
	}, waiting, held, lost, refused, handOff, state, changes)
	return errs[9]
}

// The reasons that are counted from 0 on: a rate sees the first increase of a series only if the series
// was there before.
var (
	lostReasons = []messages.Reason{messages.Reason_SESSION_LOST, messages.Reason_NODE_DELETED, messages.Reason_CLOSED,
		messages.Reason_HOLD_EXPIRED, messages.Reason_INTERNAL}
	refusedReasons = slices.DeleteFunc(allReasons(), func(r messages.Reason) bool { return r == messages.Reason_REASON_UNSPECIFIED })
)

func allReasons() (all []messages.Reason) {
	for r := range messages.Reason_name {
		all = append(all, messages.Reason(r))
	}
	return all
}

func observeReasons(o metric.Observer, c metric.Int64Observable, counts map[error]uint64, reasons []messages.Reason) {
	all := map[string]uint64{}
	for _, r := range reasons {
		all[reason(r)] = 0
	}
	for err, n := range counts {
		all[reason(err)] += n
	}
	for name, n := range all {
		o.ObserveInt64(c, int64(n), metric.WithAttributes(attribute.String("reason", name)))
	}
}

// sum returns the sums of all Locks, and how many sessions are in each state.
func (m *monitor) sum() (actors.Stats, map[messages.SessionState]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, sessions := m.over, map[messages.SessionState]int64{}
	all.Lost, all.Refused = maps.Clone(m.over.Lost), maps.Clone(m.over.Refused)
	for _, stats := range m.stats {
		s := stats()
		sessions[s.Session.State]++
		add(&all, s)
	}
	return all, sessions
}

// add adds the numbers that are reported of s to sum.
func add(sum *actors.Stats, s actors.Stats) {
	sum.Waiting += s.Waiting
	sum.Held += s.Held
	sum.LocalHandOffs += s.LocalHandOffs
	sum.RemoteHandOffs += s.RemoteHandOffs
	sum.Suspensions += s.Suspensions
	sum.SessionsLost += s.SessionsLost
	addReasons(sum.Lost, s.Lost)
	addReasons(sum.Refused, s.Refused)
}

func addReasons(sum, all map[error]uint64) {
	for err, n := range all {
		sum[err] += n
	}
}
