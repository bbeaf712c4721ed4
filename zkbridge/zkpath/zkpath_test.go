package zkpath_test

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

func TestPaths(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b.c/..d", "/ä b/ç"} {
		if err := zkpath.Check(path); err != nil {
			t.Error(err)
		}
		if dir, node := zkpath.Split(path); zkpath.Join(dir, node) != path {
			t.Errorf("%q becomes %q", path, zkpath.Join(dir, node))
		}
	}
	for _, path := range []string{"", "a", "a/b", "//", "/a/", "/a//b", "/./a", "/a/..", "/a\x00", "/a\n", "/\u0085", "/\ufffd", "/\xff", "/\ue000", "/\U0001f512"} {
		if zkpath.Check(path) == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}
