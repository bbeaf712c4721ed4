package machinetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the effects that the machines have into the scripts")

// Stepper is a machine under a script: it takes an event and returns the lines of the effects.
type Stepper interface {
	Step(event Line) []string
}

// RunScripts runs each script in testdata with a new machine. It fails if the effects are not those
// of the script.
func RunScripts(t *testing.T, start func() Stepper) {
	files, err := filepath.Glob("testdata/*.txt")
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

// runScript returns the script with the effects that the machine has.
func runScript(t *testing.T, script string, machine Stepper) string {
	var out strings.Builder
	open := openEffects{}
	for i, text := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		event, isEvent := strings.CutPrefix(text, "> ")
		if !isEvent {
			if strings.HasPrefix(text, "#") || text == "" {
				fmt.Fprintln(&out, text)
			}
			continue // an effect: written anew below
		}
		fmt.Fprintln(&out, text)
		line := parse(t, event)
		if err := open.check(line); err != nil {
			t.Errorf("line %d: %q: %v", i+1, event, err)
		}
		for _, effect := range machine.Step(line) {
			open.add(parse(t, effect))
			fmt.Fprintln(&out, effect)
		}
	}
	return out.String()
}

// When returns the text if set is true, and otherwise "".
func When(set bool, text string) string {
	if set {
		return text
	}
	return ""
}
