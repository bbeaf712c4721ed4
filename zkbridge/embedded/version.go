package embedded

import "fmt"

// release is a version of ZooKeeper: major, minor and patch.
type release [3]int

// The releases with which ZooKeeper has changed what this server can do in either way: one for each
// minor version that is maintained. Later minor versions have the change, too.
var (
	// eventsHaveZxid: the event of a watch has the zxid of the transaction (ZOOKEEPER-4655).
	eventsHaveZxid = []release{{3, 9, 0}}
	// malformedTakesNone: a write that cannot be parsed takes no zxid, unless it is a multi
	// (ZOOKEEPER-4575).
	malformedTakesNone = []release{{3, 9, 0}}
	// watchModesAddUp: a connection can have a watch of each mode on a path, and see and remove
	// each alone (ZOOKEEPER-4466, 4471, 4472 and 4475).
	watchModesAddUp = []release{{3, 9, 0}}
	// create2HasStat: the result of a create2 in a multi has the node's stat (ZOOKEEPER-4026).
	create2HasStat = []release{{3, 8, 2}, {3, 9, 0}}
	// existsNeedsRead: exists needs READ on the node if there is one (ZOOKEEPER-2590).
	existsNeedsRead = []release{{3, 8, 4}, {3, 9, 2}}
	// checkNeedsMulti: a check outside of a transaction is an unknown request (ZOOKEEPER-2623).
	checkNeedsMulti = []release{{3, 8, 5}, {3, 9, 3}}
)

func parseRelease(version string) (r release, err error) {
	var rest string
	if n, _ := fmt.Sscanf(version, "%d.%d.%d%s", &r[0], &r[1], &r[2], &rest); n != 3 || r[0] != 3 || min(r[1], r[2]) < 0 {
		return r, fmt.Errorf("Version is %q: it must be one of ZooKeeper, such as \"3.8.0\" or \"3.9.3\"", version)
	}
	return r, nil
}

// has reports whether the release has a change that came with the first releases.
func (r release) has(first []release) bool {
	for _, f := range first {
		if r[1] == f[1] {
			return r[2] >= f[2]
		}
	}
	return r[1] > first[len(first)-1][1]
}
