package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
	"github.com/actorlock/actorlock/messages"
)

// metrics writes what lockd does in Prometheus' format. The names that actors/telemetry has are its
// own: lockd is in the module of the library, which does not need OpenTelemetry.
type metrics struct {
	locks        *actors.Locks
	server       *remote.LockServer
	certificates map[string]*lockflags.Certificates // by side; nil for none
	audit        *audit                             // nil for none
	requests     *monitor
}

// metricsLimit bounds a request for metrics.
const metricsLimit = 10 * time.Second

// serve serves until ctx ends: /metrics, and /health with the status 200 while lockd takes clients and
// its session is connected, or 503.
func (m *metrics) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		m.write(w)
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if !m.server.Serving() {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "NOT_SERVING")
			return
		}
		fmt.Fprintln(w, "SERVING")
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: metricsLimit, ReadTimeout: metricsLimit, WriteTimeout: metricsLimit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { web.Close() })()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// write writes all metrics.
func (m *metrics) write(out io.Writer) {
	w := bufio.NewWriter(out)
	defer w.Flush() // a client that reads no more is none of lockd's
	metric := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	number := func(name, kind, help string, value uint64) {
		metric(name, kind, help)
		fmt.Fprintf(w, "%s %d\n", name, value)
	}
	byReason := func(name, help string, counts map[error]uint64) {
		metric(name, "counter", help)
		all := map[string]uint64{}
		for _, r := range messages.Reason_name { // each is there from 0 on, so that a rate sees the first
			all[strings.ToLower(r)] = 0
		}
		delete(all, strings.ToLower(messages.Reason(0).String()))
		for err, n := range counts {
			all[reason(err)] += n
		}
		for _, why := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(w, "%s{reason=%q} %d\n", name, why, all[why])
		}
	}
	locks, server := m.locks.Stats(), m.server.Stats()
	number("actorlock_server_clients", "gauge", "Clients that have a lease.", uint64(server.Clients))
	number("actorlock_server_leases_lost_total", "counter", "Leases that ended with grants of which the client had not let go.", server.LeasesLost)
	number("actorlock_server_late_renewals_total", "counter", "Renewals that came when less than half of the lease was left.", server.LateRenewals)
	number("actorlock_server_pending_messages", "gauge", "Messages that the clients have not confirmed.", uint64(server.PendingMessages))
	number("actorlock_server_pending_bytes", "gauge", "Bytes of the messages that the clients have not confirmed.", uint64(server.PendingBytes))
	metric("actorlock_server_limit_refusals_total", "counter", "Clients, connections, requests and questions that were refused, and streams that were ended, because of a limit.")
	for _, limit := range slices.Sorted(maps.Keys(server.LimitRefusals)) {
		fmt.Fprintf(w, "actorlock_server_limit_refusals_total{limit=%q} %d\n", limit, server.LimitRefusals[limit])
	}
	number("actorlock_held", "gauge", "Grants that hold a lock, or whose release ZooKeeper has not confirmed.", uint64(locks.Held))
	number("actorlock_waiting", "gauge", "Requests that wait for a lock.", uint64(locks.Waiting))
	number("actorlock_requested_total", "counter", "Requests that came to a lock.", locks.Requested)
	number("actorlock_acquired_total", "counter", "Grants.", locks.Acquired)
	number("actorlock_released_total", "counter", "Grants that were given back.", locks.Released)
	byReason("actorlock_lost_total", "Grants that ended without a release that ZooKeeper has confirmed.", locks.Lost)
	byReason("actorlock_refused_total", "Requests that were never granted.", locks.Refused)
	m.requests.acquires.write(w, "actorlock_acquire_duration_seconds", "How long clients' requests for locks wait.")
	m.requests.holds.write(w, "actorlock_hold_duration_seconds", "How long clients hold locks.")
	metric("actorlock_handoff_total", "counter", "Locks that passed to a waiter of a client of this server, from this server or from elsewhere.")
	fmt.Fprintf(w, "actorlock_handoff_total{scope=\"local\"} %d\nactorlock_handoff_total{scope=\"remote\"} %d\n", locks.LocalHandOffs, locks.RemoteHandOffs)
	metric("actorlock_session_state", "gauge", "1 for the present state of the session with ZooKeeper.")
	for _, state := range []messages.SessionState{messages.SessionState_CONNECTED, messages.SessionState_SUSPENDED, messages.SessionState_LOST} {
		is := 0
		if locks.Session.State == state {
			is = 1
		}
		fmt.Fprintf(w, "actorlock_session_state{state=%q} %d\n", strings.ToLower(state.String()), is)
	}
	metric("actorlock_session_changes_total", "counter", "How often the session with ZooKeeper became suspended or was lost.")
	fmt.Fprintf(w, "actorlock_session_changes_total{state=\"suspended\"} %d\nactorlock_session_changes_total{state=\"lost\"} %d\n", locks.Suspensions, locks.SessionsLost)
	metric("actorlock_certificate_ends_seconds", "gauge", "Seconds until the certificate ends; negative after its end.")
	for _, side := range slices.Sorted(maps.Keys(m.certificates)) {
		if c := m.certificates[side]; c != nil && !c.Ends().IsZero() {
			fmt.Fprintf(w, "actorlock_certificate_ends_seconds{side=%q} %s\n", side, strconv.FormatFloat(time.Until(c.Ends()).Seconds(), 'f', 0, 64))
		}
	}
	if m.audit != nil {
		number("actorlock_audit_dropped_total", "counter", "Lines of the audit that were dropped.", m.audit.dropped.Load())
	}
}
