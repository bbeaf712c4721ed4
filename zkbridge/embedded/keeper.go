package embedded

import (
	"strings"
	"time"
)

// Differences of servers that speak ZooKeeper's protocol but are not ZooKeeper.

// keeperKnows has the requests of the protocol that ClickHouse Keeper knows, each with the first
// version that does. It hangs up on all others, also inside of a transaction.
var keeperKnows = map[Op][]release{
	OpCreate: {keeper(0, 0)}, OpDelete: {keeper(0, 0)}, OpExists: {keeper(0, 0)}, OpGetData: {keeper(0, 0)},
	OpSetData: {keeper(0, 0)}, OpGetACL: {keeper(0, 0)}, OpSetACL: {keeper(0, 0)}, OpGetChildren: {keeper(0, 0)},
	OpSync: {keeper(0, 0)}, OpPing: {keeper(0, 0)}, OpGetChildren2: {keeper(0, 0)}, OpCheck: {keeper(0, 0)},
	OpMulti: {keeper(0, 0)}, OpAuth: {keeper(0, 0)}, OpCloseSession: {keeper(0, 0)},
	OpMultiRead: {keeper(22, 11)},
	OpCreate2:   {keeper(25, 12)},
	OpAddWatch:  {keeper(26, 1)}, OpCheckWatches: {keeper(26, 1)}, OpRemoveWatches: {keeper(26, 1)},
	OpSetWatches: {keeper(26, 1)}, OpSetWatches2: {keeper(26, 1)},
	OpCreateContainer: {keeper(26, 8)}, OpCreateTTL: {keeper(26, 8)},
}

// keeperMinTimeout and keeperMaxTimeout are the defaults of min_session_timeout_ms and session_timeout_ms.
const (
	keeperMinTimeout = 10 * time.Second
	keeperMaxTimeout = 100 * time.Second
	keeperTick       = 500 * time.Millisecond // dead_session_check_period_ms
)

func (r release) isKeeper() bool { return r.server == clickHouseKeeper }

// knows reports whether the server answers a request of this kind.
func (r release) knows(op Op) bool { return !r.isKeeper() || r.has(keeperKnows[op]) }

// hangsUpOn reports whether the server ends the connection at this request, instead of executing it.
func (r release) hangsUpOn(op Op, d decoder) bool {
	if !r.isKeeper() {
		return false
	}
	if op != OpMulti && op != OpMultiRead {
		return !r.knows(op)
	}
	if !r.knows(op) {
		return true
	}
	ops, ok := decodeMulti(&d)
	for _, o := range ops {
		kind := o.op
		if o.create != nil {
			kind = o.create.op // as it was sent
		}
		if !r.knows(kind) {
			return true
		}
	}
	return !ok
}

// takesZxid reports whether the request has a zxid of its own although it changes nothing: Keeper
// has its members agree on each request that is no read.
func (r release) takesZxid(op Op) bool {
	return r.isKeeper() && (op == OpPing || op == OpAuth || op == OpSync)
}

// refusesContainers reports whether the server answers the create of a container that its arguments are bad.
func (r release) refusesContainers() bool { return r.server == raftKeeper }

// hangUp ends the connection as Keeper does at a request that it does not know: answers that are
// still under way are lost.
func (c *conn) hangUp() {
	c.out.b = c.out.b[:0]
	c.close()
}

// accepts reports whether the server has such logins: Keeper knows no scheme but digest.
func (r release) accepts(scheme, token string) bool {
	return !r.isKeeper() || scheme == "digest" && strings.Count(token, ":") == 1
}
