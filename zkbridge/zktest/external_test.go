package zktest

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Tests run on a server that others have started, and leave nothing there but what others had.
func TestExternalServer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.9.3", "keeper-26.8"} {
		t.Run(version, func(t *testing.T) {
			others := Embedded(t, Version(version))
			create(t, others.Client(t), "/theirs", 0)
			s, err := external(others.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer s.inspector.close()
			if !s.Real() || !s.TellsWatches() || s.Version(t) != version {
				t.Errorf("real %v, tells watches %v, version %q", s.Real(), s.TellsWatches(), s.Version(t))
			}
			path := s.Path(t)
			create(t, s.Client(t), path, 0)
			create(t, s.Client(t), path+"/child", 0)
			if _, _, _, err := s.Client(t).ExistsW(path); err != nil || s.WatchesBelow(t, path) != 1 {
				t.Errorf("%v, %d watches", err, s.WatchesBelow(t, path))
			}
			if err := s.removeNodes(); err != nil {
				t.Error(err)
			}
			if left := strings.Join(s.Nodes(t, "/"), " "); left != "theirs zookeeper" && left != "keeper theirs" && left != "theirs" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// What a node's ACL protects stays.
func TestExternalServerProtectedNode(t *testing.T) {
	t.Parallel()
	others := Embedded(t)
	s, err := external(others.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer s.inspector.close()
	path := s.Path(t)
	if _, err := s.Client(t).Create(path, nil, 0, zk.WorldACL(zk.PermRead)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client(t).Create(path+"/child", nil, 0, anyone); err != zk.ErrNoAuth {
		t.Fatal(err)
	}
	if err := s.removeNodes(); err != nil {
		t.Error(err)
	}
}

// The error names the settings of a server that does not grant the sessions of the tests.
func TestExternalServerOfLongSessions(t *testing.T) {
	t.Parallel()
	others := Embedded(t, TickTime(2*time.Second))
	_, err := external(others.Addr())
	if err == nil || !strings.Contains(err.Error(), "4s where 400ms is asked for") || !strings.Contains(err.Error(), "min_session_timeout_ms") {
		t.Error(err)
	}
}

func TestVersionIn(t *testing.T) {
	for reply, want := range map[string]string{
		"Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25\nLatency": "3.8.0",
		"Zookeeper version: keeper-26.8-embedded, built on 02/25/2022 08:49 UTC\nLatency":                 "keeper-26.8",
		"ClickHouse Keeper version: v23.3.1.2823-testing-46e85357ce2da2a99f56ee83a079e892d7ec3726\n":      "keeper-23.3.1.2823",
		"Zookeeper version: raftkeeper-2.1-embedded, built on 02/25/2022 08:49 UTC\nLatency":              "raftkeeper-2.1",
		"": "",
	} {
		if got := versionIn(reply); got != want {
			t.Errorf("%q: %q, want %q", reply, got, want)
		}
	}
}
