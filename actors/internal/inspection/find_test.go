package inspection

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
)

// The largest directories give way where there are too many.
func TestDescend(t *testing.T) {
	next := func() map[string][]string {
		return map[string][]string{"/few": {"/few/a", "/few/b"}, "/many": {"/many/3", "/many/1", "/many/4", "/many/2"}, "/one": {"/one/a"}}
	}
	for _, c := range []struct {
		depth, left   int
		want, skipped []string
	}{
		{0, 7, []string{"/one/a", "/few/a", "/few/b", "/many/3", "/many/1", "/many/4", "/many/2"}, nil},
		{0, 6, []string{"/one/a", "/few/a", "/few/b", "/many/1", "/many/2", "/many/3"}, []string{"/many"}},
		{0, 2, []string{"/one/a", "/few/a"}, []string{"/few", "/many"}},
		{0, 0, nil, []string{"/few", "/many", "/one"}},
		{findDepth, 7, nil, []string{"/few", "/many", "/one"}},
	} {
		f := finder{next: next(), skipped: map[string]error{}}
		got := f.descend(c.depth, c.left)
		skipped := slices.Sorted(maps.Keys(f.skipped))
		if !slices.Equal(got, c.want) || !slices.Equal(skipped, c.skipped) {
			t.Errorf("depth %d, %d left: %q, skipped %q", c.depth, c.left, got, f.skipped)
		}
		for directory, err := range f.skipped {
			if !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
				t.Errorf("%s is skipped for %v", directory, err)
			}
		}
	}
}

// A directory is skipped if its nodes do not fit beside those of others of its level.
func TestNextLevelIsBounded(t *testing.T) {
	f := finder{next: map[string][]string{}, skipped: map[string]error{}}
	long := "/" + strings.Repeat("x", findBytes/3)
	for _, directory := range []string{"/a", "/b", "/c", "/d"} {
		f.noteNext(directory, []string{directory, long})
	}
	f.noteNext("/e", []string{"/e/1"})
	if got := slices.Sorted(maps.Keys(f.next)); !slices.Equal(got, []string{"/a", "/b", "/e"}) {
		t.Errorf("the next level has those in %q", got)
	}
	for _, directory := range []string{"/c", "/d"} {
		if err := f.skipped[directory]; !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
			t.Errorf("%s is skipped for %v", directory, err)
		}
	}
}
