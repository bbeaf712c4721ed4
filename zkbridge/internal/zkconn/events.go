package zkconn

// A SessionConn posts these events.
type (
	// Established says that a server has confirmed the session, new or old, over Conn.
	Established struct {
		Conn   *Conn
		Detail string
	}
	// Disconnected says that the connection is gone, or that an attempt to connect has failed.
	Disconnected struct{ Detail string }
	// Expired says that the session is over, as a server reports.
	Expired struct{ Detail string }
	// AuthRefused says that a server has refused the credentials. The SessionConn makes no other
	// attempt.
	AuthRefused struct{ Err error }
	// NodeChanged says that the watch of a node, or of a directory's children, has fired.
	NodeChanged struct {
		Path    string // zkpath.Children(directory) for a directory's children
		Deleted bool
	}
)
