package embedded

// TB is the part of testing.TB that [Run] needs. It keeps package testing out
// of programs that link this package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Run starts a server that is closed when the test ends. Without a Config it
// takes the zero value.
func Run(t TB, cfg ...ServerConfig) *Server {
	t.Helper()
	var c ServerConfig
	if len(cfg) > 0 {
		c = cfg[0]
	}
	s, err := Start(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
