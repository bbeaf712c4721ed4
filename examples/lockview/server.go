package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

//go:embed page
var files embed.FS

// sendEvery is the shortest time between two events to one page. More events would show no more.
const sendEvery = 100 * time.Millisecond

// keepAlive is the time after which a page gets an event without a change, so that both sides
// notice a broken connection.
const keepAlive = 10 * time.Second

// requestLimit is the time in which a request must be read, and an answer or an event be written.
const requestLimit = 30 * time.Second

// server serves the page and its events.
type server struct {
	board *board
	// revoke asks a holder to release. It is nil if the page may not do that.
	revoke func(ctx context.Context, node string) error
	// hosts are the accepted names in a Host header, besides localhost and IP addresses. A page of
	// another site can use this server only by a name of that site which leads here.
	hosts []string
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
	sameSite := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.serves(r.Host) {
			http.Error(w, fmt.Sprintf("this page is not served at %q: give lockview the name by -hosts, or use its IP address", r.Host),
				http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy",
			"default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		sameSite.ServeHTTP(w, r)
	})
}

// serves reports whether a Host header has a name of this server. The port does not matter, because
// tunnels change it.
func (s *server) serves(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || slices.ContainsFunc(s.hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

// events sends the board, and then its changes, until the page is closed or does not read them.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	var version uint64
	var last state
	for first := true; ; first = false {
		changed, present, now, next := s.board.since(version)
		stream.SetWriteDeadline(time.Now().Add(requestLimit))
		if first || present != last {
			last = present
			s.send(w, "state", pageState{present, s.board.root, s.revoke != nil, time.Now()})
		}
		if first || len(changed.Changed)+len(changed.Groups)+len(changed.Gone) > 0 {
			s.send(w, "locks", changed)
		}
		version = now
		if stream.Flush() != nil {
			return
		}
		if !pause(r.Context(), sendEvery, nil) || !pause(r.Context(), keepAlive, next) {
			return
		}
		fmt.Fprint(w, ": alive\n\n")
	}
}

// pageState is what a page gets as the event state.
type pageState struct {
	state
	Root      string    `json:"root"`
	Revocable bool      `json:"revocable"`
	Now       time.Time `json:"now"`
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
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestLimit))
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
