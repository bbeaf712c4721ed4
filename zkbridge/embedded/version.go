package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// release is a version of ZooKeeper or of another server that speaks its protocol.
type release struct {
	server string // empty for ZooKeeper
	number [3]int // major, minor and patch
}

// The servers that are not ZooKeeper, as they begin a [ServerConfig.Version].
const (
	clickHouseKeeper = "keeper"
	raftKeeper       = "raftkeeper"
)

func zooKeeper(major, minor, patch int) release { return release{number: [3]int{major, minor, patch}} }
func keeper(year, month int) release            { return release{clickHouseKeeper, [3]int{year, month}} }

// The releases with which ZooKeeper has changed what this server can do in either way: one for each
// minor version that is maintained. Later minor versions have the change, too. A release of another
// server says that this one has it from then on.
var (
	// eventsHaveZxid: the event of a watch has the zxid of the transaction (ZOOKEEPER-4655).
	eventsHaveZxid = []release{zooKeeper(3, 9, 0)}
	// malformedTakesNone: a write that cannot be parsed takes no zxid, unless it is a multi
	// (ZOOKEEPER-4575).
	malformedTakesNone = []release{zooKeeper(3, 9, 0)}
	// watchModesAddUp: a connection can have a watch of each mode on a path, and see and remove
	// each alone (ZOOKEEPER-4466, 4471, 4472 and 4475).
	watchModesAddUp = []release{zooKeeper(3, 9, 0)}
	// create2HasStat: the result of a create2 in a multi has the node's stat (ZOOKEEPER-4026).
	create2HasStat = []release{zooKeeper(3, 8, 2), zooKeeper(3, 9, 0), keeper(0, 0)}
	// existsNeedsRead: exists needs READ on the node if there is one (ZOOKEEPER-2590).
	existsNeedsRead = []release{zooKeeper(3, 8, 4), zooKeeper(3, 9, 2)}
	// checkNeedsMulti: a check outside of a transaction is an unknown request (ZOOKEEPER-2623).
	checkNeedsMulti = []release{zooKeeper(3, 8, 5), zooKeeper(3, 9, 3)}
)

func parseRelease(version string) (r release, err error) {
	number, parts := version, 3
	if server, rest, found := strings.Cut(version, "-"); found {
		r.server, number, parts = server, rest, 2
	}
	fields := strings.Split(number, ".")
	ok := len(fields) == parts
	for i := 0; ok && i < parts; i++ {
		r.number[i], err = strconv.Atoi(fields[i])
		ok = err == nil && r.number[i] >= 0
	}
	switch r.server {
	case "":
		ok = ok && r.number[0] == 3
	case clickHouseKeeper, raftKeeper:
	default:
		ok = false
	}
	if !ok {
		return r, fmt.Errorf("Version is %q: it must be one of ZooKeeper, such as \"3.8.0\" or \"3.9.3\", "+
			"of ClickHouse Keeper, such as \"keeper-22.8\" or \"keeper-26.8\", or of RaftKeeper, such as \"raftkeeper-2.1\"", version)
	}
	return r, nil
}

// has reports whether the release has a change that came with the first releases.
func (r release) has(first []release) (has bool) {
	for _, f := range first {
		if f.server != r.server {
			continue
		}
		if f.number[0] == r.number[0] && f.number[1] == r.number[1] {
			return r.number[2] >= f.number[2]
		}
		has = slices.Compare(r.number[:], f.number[:]) > 0
	}
	return has
}
