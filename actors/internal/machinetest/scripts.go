package machinetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the effects that scripts get into their files")

// Stepper runs a script: it takes the line of an event and returns the effects.
type Stepper interface {
	Step(t *testing.T, event string) []string
}

func RunScripts(t *testing.T, pattern string, start func() Stepper) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want), start())
			if got == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s", firstDifference(got, string(want)))
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			from := max(0, i-6)
			return fmt.Sprintf("%s\nat line %d, want from there:\n%s", strings.Join(g[from:min(i+6, len(g))], "\n"), i+1, strings.Join(w[min(i, len(w)):min(i+6, len(w))], "\n"))
		}
	}
	return "(shorter)\n" + got
}

func runScript(t *testing.T, text string, s Stepper) string {
	var out strings.Builder
	open := openRequests{}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		event, isEvent := strings.CutPrefix(line, "> ")
		if !isEvent {
			if strings.HasPrefix(line, "#") || line == "" {
				fmt.Fprintln(&out, line)
			}
			continue // an effect: written anew below
		}
		fmt.Fprintln(&out, line)
		if err := open.check(event); err != nil {
			t.Errorf("line %d: %q: %v", i+1, event, err)
		}
		for _, e := range s.Step(t, event) {
			open.add(e)
			fmt.Fprintln(&out, e)
		}
	}
	return out.String()
}

// Parse splits a line into its word and its arguments. num returns an argument that is a number. It
// returns the value of its parameter otherwise if the argument is missing.
func Parse(t *testing.T, line string) (word string, args map[string]string, num func(key string, otherwise int64) int64) {
	words := strings.Fields(line)
	args = map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	return words[0], args, func(key string, otherwise int64) int64 {
		v, ok := args[key]
		if !ok {
			return otherwise
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return n
	}
}

// Numbers returns the numbers of a list with commas, such as "1,2". Text that is no number ends the test.
func Numbers(t *testing.T, list string) (all []int64) {
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// When returns text if set, and otherwise "".
func When(set bool, text string) string {
	if set {
		return text
	}
	return ""
}
