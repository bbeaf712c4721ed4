package zkconn

import "testing"

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
