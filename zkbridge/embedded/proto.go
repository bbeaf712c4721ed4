package embedded

import "fmt"

// Op is a request type of the ZooKeeper protocol.
type Op int32

// The request types. OpAny, OpAll, OpDial and OpConnect exist for [Fault] only:
// OpAny is every request in a session but a ping, OpAll every request, pings and
// handshakes included, OpDial a new connection, OpConnect a session handshake.
const (
	OpAny                  Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpConnect              Op = -10
	OpCloseSession         Op = -11
	OpDial                 Op = -100
	OpAll                  Op = -101
)

const opError = -1 // marks a failed operation in a multi's reply

var opNames = map[Op]string{
	OpAny: "any", OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren",
	OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check", OpMulti: "multi",
	OpCreate2: "create2", OpReconfig: "reconfig", OpCheckWatches: "checkWatches",
	OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer",
	OpCreateTTL: "createTTL", OpMultiRead: "multiRead",
	OpAuth: "auth", OpSetWatches: "setWatches", OpGetEphemerals: "getEphemerals",
	OpGetAllChildrenNumber: "getAllChildrenNumber", OpSetWatches2: "setWatches2", OpAddWatch: "addWatch",
	OpWhoAmI: "whoAmI", OpConnect: "connect", OpCloseSession: "closeSession", OpDial: "dial", OpAll: "all",
}

// String returns the protocol's name for the request type.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return fmt.Sprintf("op(%d)", int32(o))
}

// code is an error code of the protocol; 0 is success.
type code int32

const (
	codeOK                      code = 0
	codeRuntimeInconsistency    code = -2
	codeMarshallingError        code = -5
	codeUnimplemented           code = -6
	codeBadArguments            code = -8
	codeNoNode                  code = -101
	codeNoAuth                  code = -102
	codeBadVersion              code = -103
	codeNoChildrenForEphemerals code = -108
	codeNodeExists              code = -110
	codeNotEmpty                code = -111
	codeInvalidACL              code = -114
	codeAuthFailed              code = -115
	codeNoWatcher               code = -121
	codeReconfigDisabled        code = -123
	codeSessionClosedNoLogin    code = -124
)

// Event types on the wire.
type eventType int32

const (
	nodeCreated         eventType = 1
	nodeDeleted         eventType = 2
	nodeDataChanged     eventType = 3
	nodeChildrenChanged eventType = 4
)

const (
	xidWatchEvent  = -1
	xidPing        = -2
	noZxid         = -1
	stateConnected = 3 // SyncConnected, the only state a server sends
)

// maxFrame is ZooKeeper's default jute.maxbuffer.
const maxFrame = 0xfffff

// stat is the wire form of a node's metadata.
type stat struct {
	czxid, mzxid, ctime, mtime  int64
	version, cversion, aversion int32
	ephemeralOwner              int64
	dataLength, numChildren     int32
	pzxid                       int64
}

func (e *encoder) stat(s stat) {
	e.long(s.czxid)
	e.long(s.mzxid)
	e.long(s.ctime)
	e.long(s.mtime)
	e.int(s.version)
	e.int(s.cversion)
	e.int(s.aversion)
	e.long(s.ephemeralOwner)
	e.int(s.dataLength)
	e.int(s.numChildren)
	e.long(s.pzxid)
}
