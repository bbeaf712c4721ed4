package embedded

import (
	"cmp"
	"log/slog"
	"net"
	"time"
)

const defaultVersion = "3.9.3"

// ServerConfig says how a [Server] behaves. The zero value works.
type ServerConfig struct {
	// Addr is the TCP address to listen on; default "127.0.0.1:0", a free
	// port on the loopback. Ignored if Listener is set.
	Addr string

	// Listener, if set, is where connections come from. Close closes it.
	Listener net.Listener

	// MemoryOnly makes the server listen nowhere: only [Server.Dial] reaches
	// it. This is the mode for testing/synctest.
	MemoryOnly bool

	// TickTime is ZooKeeper's tickTime; default 2 s. Sessions expire at the
	// end of the tick in which their time runs out.
	TickTime time.Duration

	// MinSessionTimeout and MaxSessionTimeout bound what clients may ask for;
	// default 2 and 20 ticks, and 10 s and 100 s as ClickHouse Keeper.
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration

	// ContainerInterval is how often emptied containers and outlived TTL
	// nodes are looked for; default 1 s.
	ContainerInterval time.Duration

	// Version is the version of ZooKeeper that the server behaves as where versions differ: from
	// 3.8.2 on, create2 in a multi returns a stat; from 3.8.4 and 3.9.2 on, exists needs READ on
	// the node; from 3.8.5 and 3.9.3 on, a check alone is no known request; from 3.9.0 on, events
	// have a zxid, a malformed write takes none, and a persistent watch and a one-shot watch of a
	// client on one path are two. Default "3.9.3".
	//
	// It can also be a version of ClickHouse Keeper, such as "keeper-22.8" or "keeper-26.8". Then a
	// client that reconnects gets a new session, and the old one lives until its timeout, which is at
	// least MinSessionTimeout, 10 s by default; passwords are zeros; opening a session takes no zxid,
	// and a ping takes one; events have none; digest is the only login; and the server hangs up on
	// requests that it does not know: getEphemerals, getAllChildrenNumber, whoAmI and reconfig always,
	// createContainer and createTTL before 26.8, setWatches and addWatch before 26.1, create2 before
	// 25.12, multiRead before 22.11. "raftkeeper-2.1" stands for RaftKeeper: as ZooKeeper 3.8.0, but
	// it refuses containers by the code for bad arguments.
	Version string

	// EnforceAuth are the schemes of which a client needs an identity before its first request, as
	// ZooKeeper's enforce.auth.schemes; default none.
	EnforceAuth []string

	// Deleted, if set, is called for each node that is deleted, with the zxid of the
	// transaction, in the order of the transactions. It must not block, nor call the server.
	Deleted func(path string, zxid int64)

	// Logger gets one record per session event and per fault; default none.
	Logger *slog.Logger
}

func (cfg ServerConfig) withDefaults(release release) ServerConfig {
	orElse := func(d *time.Duration, other time.Duration) {
		if *d <= 0 {
			*d = other
		}
	}
	if release.isKeeper() {
		orElse(&cfg.TickTime, keeperTick)
		orElse(&cfg.MinSessionTimeout, keeperMinTimeout)
		orElse(&cfg.MaxSessionTimeout, max(cfg.MinSessionTimeout, keeperMaxTimeout))
	}
	orElse(&cfg.TickTime, 2*time.Second)
	orElse(&cfg.MinSessionTimeout, 2*cfg.TickTime)
	orElse(&cfg.MaxSessionTimeout, 20*cfg.TickTime)
	orElse(&cfg.ContainerInterval, time.Second)
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:0")
	cfg.Version = cmp.Or(cfg.Version, defaultVersion)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return cfg
}
