package zkconn

// A sessionConn posts these events to the bridge.
type (
	// established: a server has confirmed the session, new or old, over conn.
	Established struct {
		From   *SessionConn
		Conn   *Conn
		Detail string
	}
	// disconnected: the connection is gone, or an attempt to connect has failed.
	Disconnected struct {
		From   *SessionConn
		Detail string
	}
	// expired: a server has said that the session is over.
	Expired struct {
		From   *SessionConn
		Detail string
	}
	// authRefused: a server does not take the credentials. No other attempt is made.
	AuthRefused struct {
		From *SessionConn
		Err  error
	}
	// nodeChanged: the watch of a node, or of a directory's children, has fired.
	NodeChanged struct {
		From    *SessionConn
		Path    string // for a directory's children that of childrenPath
		Deleted bool
	}
)
