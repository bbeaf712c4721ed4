package zktest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Backup is the data of a server at one moment.
type Backup struct {
	embedded *embedded.Backup
	folders  []string // of a real server, one per process
}

// Backup returns the data of a server, which must be stopped if it is a real one.
func (s *Server) Backup(t testing.TB) *Backup {
	t.Helper()
	if !s.Real() {
		return &Backup{embedded: s.embedded.Backup()}
	}
	s.mustBePrivate(t, "Backup")
	b := &Backup{}
	for _, n := range s.nodes {
		folder := filepath.Join(t.TempDir(), "version-2")
		if err := os.CopyFS(folder, os.DirFS(n.version2())); err != nil {
			t.Fatalf("zktest: back up %s: %v", n.addr(), err)
		}
		b.folders = append(b.folders, folder)
	}
	return b
}

// Restore replaces the data of a stopped server by those of a backup of it, or by nothing if the
// backup is nil.
func (s *Server) Restore(t testing.TB, b *Backup) {
	t.Helper()
	if !s.Real() {
		if b == nil {
			b = &Backup{}
		}
		s.embedded.Restore(b.embedded)
		return
	}
	s.mustBePrivate(t, "Restore")
	for i, n := range s.nodes {
		err := os.RemoveAll(n.version2())
		if err == nil && b != nil {
			err = os.CopyFS(n.version2(), os.DirFS(b.folders[i]))
		}
		if err != nil {
			t.Fatalf("zktest: restore %s: %v", n.addr(), err)
		}
	}
}

// version2 returns the folder of the snapshots and the log.
func (n *serverProcess) version2() string { return filepath.Join(n.data(), "version-2") }
