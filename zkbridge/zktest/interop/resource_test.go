package interop

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestReplay(t *testing.T) {
	const x, y, s1, s2 = "enter x exclusive /n", "enter y exclusive ", "enter s1 shared ", "enter s2 shared "
	for _, c := range []struct {
		name  string
		log   []string
		limit int
		want  string // in the error; empty where there is none
	}{
		{"nothing", nil, 0, ""},
		{"one after the other", []string{x, "leave x", y, "leave y", x}, 0, ""},
		{"two exclusive ones", []string{x, y, "leave x", "leave y"}, 0, "line 2: y enters (exclusive) while x is inside"},
		{"nested", []string{x, y, "leave y", "leave x"}, 0, "line 2"},
		{"shared", []string{s1, s2, "leave s1", "leave s2", x}, 0, ""},
		{"shared beside exclusive", []string{x, s1}, 0, "line 2: s1 enters (shared) while x is inside"},
		{"exclusive beside shared", []string{s1, x}, 0, "line 2: x enters (exclusive) while s1 is inside"},
		{"within the limit", []string{s1, s2, "leave s1", s1}, 2, ""},
		{"over the limit", []string{s1, s2}, 1, "line 2: s2 enters, and with it more than 1 are inside"},
		{"the same name twice", []string{s1, s1}, 0, "line 2"},
		{"left without entering", []string{"leave x"}, 0, `line 1: "leave`},
		{"forgotten", []string{x, "forget x", y}, 0, ""},
		{"torn", []string{"ent"}, 0, `line 1: "ent"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := strings.ReplaceAll(strings.Join(c.log, "\n"), " ", "\t")
			_, err := replay(log, c.limit)
			if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestGoContenders(t *testing.T) {
	r := NewResource(t)
	var mu sync.Mutex
	acquire := func() (func() error, error) {
		mu.Lock()
		return func() error { mu.Unlock(); return nil }, nil
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if err := r.Contend(fmt.Sprint("go-", i), Exclusive, 20, acquire); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := r.Verify(0); err != nil {
		t.Error(err)
	}
	if n := r.Rounds("go-1"); n != 20 || len(r.Visits()) != 60 {
		t.Errorf("%d rounds of one, %d visits", n, len(r.Visits()))
	}
}
