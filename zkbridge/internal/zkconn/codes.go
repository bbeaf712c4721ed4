package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// serverCode is an error code of ZooKeeper, and what it means for a request.
type serverCode struct {
	code    int32
	name    string // in ZooKeeper's KeeperException
	err     error  // go-zookeeper's; nil if it has none
	outcome Outcome
	reason  messages.Reason
	meaning string // for people; empty if err says it
}

// serverCodes has all error codes of ZooKeeper 3.9. A refusal without a reason is UNAVAILABLE. The
// writer looks for the node of a create that is Inconclusive.
var serverCodes = []serverCode{
	// Errors of the server: the request may have been executed.
	{-1, "SYSTEMERROR", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the server has failed"},
	{codeInconsistent, "RUNTIMEINCONSISTENCY", nil, Inconclusive, messages.Reason_UNAVAILABLE, "another operation of the transaction has failed"},
	{-3, "DATAINCONSISTENCY", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the server's data are damaged"},
	{-4, "CONNECTIONLOSS", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the server has lost a connection"},
	{codeMarshalling, "MARSHALLINGERROR", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the server cannot read the request, or has failed"},
	{CodeUnimplemented, "UNIMPLEMENTED", nil, Refused, messages.Reason_UNAVAILABLE, "the server does not know the request"},
	{-7, "OPERATIONTIMEOUT", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the server has not executed the request in time"},
	{-122, "REQUESTTIMEOUT", nil, Inconclusive, messages.Reason_UNAVAILABLE, "the request was not executed in time"},
	{-100, "APIERROR", zk.ErrAPIError, Inconclusive, messages.Reason_UNAVAILABLE, ""}, // go-zookeeper's for an answer that it cannot decode

	// The session or the connection is over, or the server has no time: the request is sent again.
	{-112, "SESSIONEXPIRED", zk.ErrSessionExpired, NotSent, messages.Reason_SESSION_LOST, ""},
	{-118, "SESSIONMOVED", zk.ErrSessionMoved, NotSent, messages.Reason_SESSION_LOST, ""},
	{codeThrottled, "THROTTLEDOP", nil, NotSent, messages.Reason_SESSION_LOST, "the server is overloaded"},

	// Rights and logins.
	{-102, "NOAUTH", zk.ErrNoAuth, Refused, messages.Reason_NO_AUTH, ""},
	{-115, "AUTHFAILED", zk.ErrAuthFailed, Refused, messages.Reason_NO_AUTH, ""},
	{codeLoginWanted, "SESSIONCLOSEDREQUIRESASLAUTH", nil, Refused, messages.Reason_NO_AUTH,
		"the server wants a login (enforce.auth.enabled or sessionRequireClientSASLAuth), by one of its enforce.auth.schemes"},
	{-114, "INVALIDACL", zk.ErrInvalidACL, Refused, messages.Reason_INVALID, ""}, // as of an ACL for creators, of a client without a login

	// Limits of the servers, and their configuration.
	{-125, "QUOTAEXCEEDED", nil, Refused, messages.Reason_LIMIT_EXCEEDED, "a quota of ZooKeeper for a directory above is used up"},
	{-119, "NOTREADONLY", nil, Refused, messages.Reason_UNAVAILABLE, "the server is read-only, since it is cut off from the others"},
	{codeLocalSession, "EPHEMERALONLOCALSESSION", nil, Refused, messages.Reason_UNAVAILABLE,
		"a local session can have no lock: set localSessionsUpgradingEnabled on the servers"},

	// Nodes.
	{-8, "BADARGUMENTS", zk.ErrBadArguments, Refused, messages.Reason_INVALID, ""},
	{-101, "NONODE", zk.ErrNoNode, Refused, messages.Reason_UNAVAILABLE, ""}, // handled where a node may be missing
	{-103, "BADVERSION", zk.ErrBadVersion, Refused, messages.Reason_UNAVAILABLE, ""},
	{-108, "NOCHILDRENFOREPHEMERALS", zk.ErrNoChildrenForEphemerals, Refused, messages.Reason_INVALID, ""},
	// The names of sequential nodes differ until the directory's counter sticks at its end.
	{-110, "NODEEXISTS", zk.ErrNodeExists, Refused, messages.Reason_SEQUENCE_EXHAUSTED, ""},
	{-111, "NOTEMPTY", zk.ErrNotEmpty, Refused, messages.Reason_UNAVAILABLE, ""},

	// Answers to requests that the bridge does not send, or of servers among each other.
	{-12, "UNKNOWNSESSION", nil, Refused, messages.Reason_UNAVAILABLE, "the server does not know the session"},
	{-13, "NEWCONFIGNOQUORUM", nil, Refused, messages.Reason_UNAVAILABLE, "the new configuration has no quorum"},
	{-14, "RECONFIGINPROGRESS", nil, Refused, messages.Reason_UNAVAILABLE, "the servers are being reconfigured"},
	{-113, "INVALIDCALLBACK", nil, Refused, messages.Reason_UNAVAILABLE, "a callback is invalid"},
	{-121, "NOWATCHER", nil, Refused, messages.Reason_UNAVAILABLE, "there is no such watch"},
	{-123, "RECONFIGDISABLED", zk.ErrReconfigDisabled, Refused, messages.Reason_UNAVAILABLE, ""},
}

// Codes returns all error codes of ZooKeeper.
func Codes() (codes []int32) {
	for _, c := range serverCodes {
		codes = append(codes, c.code)
	}
	return codes
}

const (
	codeInconsistent  = -2
	codeMarshalling   = -5
	CodeUnimplemented = -6
	codeAPIError      = -100 // codes above this are the server's own errors
	codeLocalSession  = -120
	codeLoginWanted   = -124
	codeThrottled     = -127
)

// codesByNumber has the entries of serverCodes by number. Those for which go-zookeeper has no error
// get one here.
var codesByNumber = func() map[int32]*serverCode {
	all := map[int32]*serverCode{}
	for i := range serverCodes {
		c := &serverCodes[i]
		if c.err == nil {
			c.err = ServerError(c.code)
		}
		all[c.code] = c
	}
	return all
}()

// codeOf returns the entry of an error that came from a server, and nil for other errors.
func codeOf(err error) *serverCode {
	for i := range serverCodes {
		if c := &serverCodes[i]; errors.Is(err, c.err) {
			return c
		}
	}
	return nil
}

// IsLocalSession reports whether a server has refused an ephemeral node because the session is a local
// one, which the servers are set not to upgrade (localSessionsEnabled without localSessionsUpgradingEnabled).
func IsLocalSession(err error) bool { return errors.Is(err, ServerError(codeLocalSession)) }

// ServerError is an error code for which go-zookeeper has no name.
type ServerError int32

func (e ServerError) Error() string {
	if c := codesByNumber[int32(e)]; c != nil {
		return fmt.Sprintf("zk: %s (%s, %d)", c.meaning, c.name, c.code)
	}
	return fmt.Sprintf("zk: error %d", int32(e))
}

// errorOf returns the error for a server's error code.
func errorOf(code int32) error {
	if c := codesByNumber[code]; c != nil {
		return c.err
	}
	if code == 0 {
		return nil
	}
	return ServerError(code)
}
