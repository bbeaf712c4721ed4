package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/actorlock/actorlock/actors"
)

//go:embed page
var files embed.FS

// sendEvery is the shortest time between two events to one page. More events would show no more.
const sendEvery = 100 * time.Millisecond

// keepAlive is the time after which a page gets an event without a change, so that both sides notice a
// broken connection.
const keepAlive = 10 * time.Second

// server serves the page and its events.
type server struct {
	board *board
	// revoke asks a holder to release. It is nil if the page may not do that.
	revoke func(ctx context.Context, node string) error
	// host is the only accepted Host header, so that a page of another site cannot use this server by another name of the loopback
	// interface. If it is empty, all are accepted.
	host string
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /revoke", s.askToRelease)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.serves(r.Host) {
			http.Error(w, fmt.Sprintf("this page is at http://%s/, and not at %s", s.host, r.Host), http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

func (s *server) serves(host string) bool {
	if s.host == "" || host == s.host {
		return true
	}
	name, port, err := net.SplitHostPort(host)
	_, own, _ := net.SplitHostPort(s.host)
	return err == nil && name == "localhost" && port == own
}

// events sends the board, and then its changes, until the page is closed.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	var version uint64
	var last sessionState
	first := true
	for {
		changed, session, now, next := s.board.since(version)
		if first || session != last {
			last = session
			s.send(w, "session", map[string]any{"state": session.State, "id": session.ID, "since": session.Since,
				"root": s.board.root, "revocable": s.revoke != nil, "now": time.Now()})
		}
		if first || len(changed.Changed)+len(changed.Gone) > 0 {
			changed.Whole = first
			s.send(w, "locks", changed)
		}
		first, version = false, now
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		if !pause(r.Context(), sendEvery, nil) || !pause(r.Context(), keepAlive, next) {
			return
		}
		fmt.Fprint(w, ": alive\n\n")
	}
}

// send writes an event. The next Flush returns its error.
func (s *server) send(w http.ResponseWriter, event string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // all types of data are known
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
}

// pause waits for d or for wake, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// askToRelease asks the holder of a node to release. A form of another site cannot send its content
// type.
func (s *server) askToRelease(w http.ResponseWriter, r *http.Request) {
	var body struct{ Node string }
	switch {
	case s.revoke == nil:
		http.Error(w, "this page is read-only: start lockview with -revoke", http.StatusForbidden)
		return
	case r.Header.Get("Content-Type") != "application/json":
		http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		return
	case json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&body) != nil:
		http.Error(w, "the body must be a JSON object with the member node", http.StatusBadRequest)
		return
	}
	if err := s.revoke(r.Context(), body.Node); err != nil {
		code := http.StatusBadGateway
		if errors.Is(err, actors.ErrInvalid) {
			code = http.StatusBadRequest
		}
		http.Error(w, err.Error(), code)
	}
}
