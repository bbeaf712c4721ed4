package zkconn

import "testing"

func TestPaths(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b.c/..d", "/ä b/ç"} {
		if err := CheckPath(path); err != nil {
			t.Error(err)
		}
		if dir, node := SplitPath(path); JoinPath(dir, node) != path {
			t.Errorf("%q becomes %q", path, JoinPath(dir, node))
		}
	}
	for _, path := range []string{"", "a", "a/b", "//", "/a/", "/a//b", "/./a", "/a/..", "/a\x00", "/a\n", "/\u0085", "/\ufffd", "/\xff", "/\ue000", "/\U0001f512"} {
		if CheckPath(path) == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}

func TestChrootPaths(t *testing.T) {
	for _, c := range []struct{ root, path, full string }{
		{"", "/", "/"}, {"", "/a", "/a"}, {"/r", "/", "/r"}, {"/r", "/a/b", "/r/a/b"}, {"/r/s", "/r", "/r/s/r"},
	} {
		r := Chroot(c.root)
		if got := r.prepend(c.path); got != c.full || r.strip(got) != c.path {
			t.Errorf("%+v: %q, and back %q", c, got, r.strip(got))
		}
	}
	if got := Chroot("/r").prepend("a"); got != "a" {
		t.Errorf("%q is made of what is refused", got)
	}
}
