package main

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
)

// monitor is the actors.Monitor of lockd. It hears of the clients' requests.
type monitor struct {
	audit           *audit // nil for none
	acquires, holds histogram
}

// Start implements actors.Monitor.
func (m *monitor) Start(func() actors.Stats) (stop func()) { return func() {} }

// Batch implements actors.Monitor.
func (m *monitor) Batch(int) {}

// Request implements actors.Monitor.
func (m *monitor) Request(ctx context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	client, is := remote.ClientOf(ctx)
	if !is {
		return nil
	}
	return &monitoredRequest{monitor: m, client: client, request: r}
}

// monitoredRequest is an actors.RequestMonitor.
type monitoredRequest struct {
	monitor *monitor
	client  remote.Peer
	request actors.MonitoredRequest
	token   actors.Token
}

func (q *monitoredRequest) series(outcome string) series {
	return series{q.request.Kind, outcome, q.request.Recipe}
}

// record adds a line to the audit, if there is one.
func (q *monitoredRequest) record(event string, d time.Duration, err error) {
	if q.monitor.audit == nil {
		return
	}
	r := &auditRecord{at: time.Now(), Event: event, Identity: q.client.Name, Address: q.client.Address, Path: q.request.Path, Recipe: q.request.Recipe,
		Kind: q.request.Kind, Owner: q.request.Owner, Seconds: d.Seconds(), token: q.token}
	if err != nil {
		r.Error = err.Error()
	}
	q.monitor.audit.add(r)
}

// Granted implements actors.RequestMonitor.
func (q *monitoredRequest) Granted(waited time.Duration, token actors.Token) {
	q.token = token
	q.monitor.acquires.observe(q.series("acquired"), waited)
	q.record("grant", waited, nil)
}

// Refused implements actors.RequestMonitor.
func (q *monitoredRequest) Refused(waited time.Duration, err error) {
	q.monitor.acquires.observe(q.series(reason(err)), waited)
}

// Ended implements actors.RequestMonitor.
func (q *monitoredRequest) Ended(held time.Duration, err error) {
	if err != nil {
		q.monitor.holds.observe(q.series(reason(err)), held)
		q.record("loss", held, err)
		return
	}
	q.monitor.holds.observe(q.series("released"), held)
	q.record("release", held, nil)
}
