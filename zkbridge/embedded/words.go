package embedded

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// versionText is the version as ZooKeeper prints it.
func (s *Server) versionText() string {
	return s.cfg.Version + "-embedded, built on 02/25/2022 08:49 UTC"
}

// words are the four-letter commands that monitoring tools send instead of a
// handshake.
var words = map[string]func(*Server, *strings.Builder){
	"ruok": func(_ *Server, w *strings.Builder) { w.WriteString("imok") },
	"isro": func(_ *Server, w *strings.Builder) { w.WriteString("rw") },
	"srvr": func(s *Server, w *strings.Builder) {
		fmt.Fprintln(w, "Zookeeper version:", s.versionText())
		s.wordStats(w)
	},
	"stat": (*Server).wordStat,
	"mntr": (*Server).wordMonitor,
	"conf": (*Server).wordConfig,
	"cons": (*Server).wordConnections,
	"dump": (*Server).wordDump,
	"envi": (*Server).wordEnvironment,
	"wchs": (*Server).wordWatchSummary,
	"wchc": (*Server).wordWatchesBySession,
	"wchp": (*Server).wordWatchesByPath,
}

func isWord(word string) bool {
	_, ok := words[word]
	return ok
}

func (c *conn) answerWord(word string) {
	if !c.hole && !c.closing {
		var w strings.Builder
		words[word](c.server, &w)
		c.out.b = append(c.out.b, w.String()...)
	}
	c.server.drop(c)
}

func (s *Server) wordStat(w *strings.Builder) {
	fmt.Fprintln(w, "Zookeeper version:", s.versionText())
	fmt.Fprintln(w, "Clients:")
	for _, c := range s.connections() {
		fmt.Fprintf(w, " /%s[1](queued=0,recved=%d,sent=%d)\n", c.nc.RemoteAddr(), c.received, c.sent)
	}
	fmt.Fprintln(w)
	s.wordStats(w)
}

func (s *Server) wordStats(w *strings.Builder) {
	fmt.Fprintln(w, "Latency min/avg/max: 0/0.0/0")
	fmt.Fprintf(w, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n", s.received, s.sent, len(s.conns))
	fmt.Fprintf(w, "Zxid: %s\nMode: standalone\nNode count: %d\n", hex(s.tree.zxid), len(s.tree.nodes))
}

func (s *Server) wordMonitor(w *strings.Builder) {
	size, ephemerals := 0, 0
	for path, n := range s.tree.nodes {
		size += len(path) + len(n.data)
	}
	for _, owned := range s.tree.ephemerals {
		ephemerals += len(owned)
	}
	fmt.Fprintf(w, "zk_version\t%s\nzk_server_state\tstandalone\n", s.versionText())
	for _, v := range []struct {
		name  string
		value any
	}{
		{"uptime", s.now().Sub(s.started).Milliseconds()}, {"min_latency", 0}, {"avg_latency", "0.0"}, {"max_latency", 0},
		{"packets_received", s.received}, {"packets_sent", s.sent}, {"num_alive_connections", len(s.conns)},
		{"outstanding_requests", 0}, {"znode_count", len(s.tree.nodes)},
		{"watch_count", s.dataWatches.count + s.childWatches.count},
		{"ephemerals_count", ephemerals}, {"approximate_data_size", size}, {"global_sessions", len(s.sessions)},
	} {
		fmt.Fprintf(w, "zk_%s\t%v\n", v.name, v.value)
	}
}

func (s *Server) wordConfig(w *strings.Builder) {
	_, port, _ := strings.Cut(s.Addr(), ":")
	fmt.Fprintf(w, "clientPort=%s\ntickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n", port,
		s.cfg.TickTime.Milliseconds(), s.cfg.MinSessionTimeout.Milliseconds(), s.cfg.MaxSessionTimeout.Milliseconds())
}

func (s *Server) wordEnvironment(w *strings.Builder) {
	fmt.Fprintf(w, "Environment:\nzookeeper.version=%s\n", s.versionText())
}

func (s *Server) wordConnections(w *strings.Builder) {
	for _, c := range s.connections() {
		fmt.Fprintf(w, " /%s[1](queued=0,recved=%d,sent=%d", c.nc.RemoteAddr(), c.received, c.sent)
		if c.session != nil {
			fmt.Fprintf(w, ",sid=%s,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=%s,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0",
				hex(c.session.id), c.lastOp, c.since.UnixMilli(), c.session.timeout.Milliseconds(), uint32(c.lastXid), hex(c.lastZxid))
		}
		fmt.Fprintln(w, ")")
	}
	fmt.Fprintln(w)
}

func (s *Server) connections() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return a.since.Compare(b.since) })
}

func (s *Server) wordDump(w *strings.Builder) {
	fmt.Fprintf(w, "SessionTracker dump:\nGlobal Sessions(%d):\n", len(s.sessions))
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		fmt.Fprintf(w, "%s\t%dms\n", hex(id), s.sessions[id].timeout.Milliseconds())
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(s.tree.ephemerals))
	for _, id := range slices.Sorted(maps.Keys(s.tree.ephemerals)) {
		fmt.Fprintf(w, "%s:\n", hex(id))
		for _, n := range s.tree.owned(id) {
			fmt.Fprintf(w, "\t%s\n", n.path)
		}
	}
	fmt.Fprintln(w, "Connections dump:")
	s.wordConnections(w)
}

func (s *Server) wordWatchSummary(w *strings.Builder) {
	fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n",
		len(s.dataWatches.byConn), len(s.dataWatches.watchers), s.dataWatches.count)
}

func (s *Server) wordWatchesBySession(w *strings.Builder) {
	for _, c := range s.connections() {
		if paths := s.dataWatches.byConn[c]; c.session != nil && len(paths) > 0 {
			fmt.Fprintf(w, "%s\n", hex(c.session.id))
			for _, path := range slices.Sorted(maps.Keys(paths)) {
				fmt.Fprintf(w, "\t%s\n", path)
			}
		}
	}
	fmt.Fprintln(w)
}

func (s *Server) wordWatchesByPath(w *strings.Builder) {
	for _, path := range slices.Sorted(maps.Keys(s.dataWatches.watchers)) {
		fmt.Fprintf(w, "%s\n", path)
		for _, c := range s.dataWatches.watchers[path] {
			if c.session != nil {
				fmt.Fprintf(w, "\t%s\n", hex(c.session.id))
			}
		}
	}
	fmt.Fprintln(w)
}
