//go:build unix

package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// bash completes subcommands, flags of the present subcommand, values, and the command behind --.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		zktest.Lack(t, errors.New("no bash on this machine (install Debian's package bash)"), err)
	}
	script := completions["bash"]()
	for _, c := range []struct{ line, want, not string }{
		{"lockrun w", "who watch", "ls"},
		{"lockrun ", "ls who watch revoke break verify generation completion", ""},
		{"lockrun -", "-zk -lock -mode -on-revoke -v -wait -auth-file -h", "-json -yes"},
		{"lockrun -mode r", "read", "write"},
		{"lockrun -acl ", "creator world", "-zk"},
		{"lockrun -on-revoke T", "TERM", "HUP"},
		{"lockrun break -zk a -", "-yes -grace -json -zk", "-lock -raise"},
		{"lockrun generation -", "-raise", "-yes"},
		{"lockrun completion ", "bash fish zsh", "-zk"},
		{"lockrun -lock /a -- basena", "basename", ""},
		{"lockrun -lock /a -- who -", "", "-json"},
	} {
		words := strings.Split(c.line, " ")
		program := script + `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lockrun; echo "${COMPREPLY[@]}"`
		out, err := exec.Command(bash, append([]string{"-c", program, "bash"}, words...)...).Output()
		got := strings.Fields(string(out))
		has := map[string]bool{}
		for _, word := range got {
			has[word] = true
		}
		for _, word := range strings.Fields(c.want) {
			if !has[word] {
				t.Errorf("%q: %q is not in %q (%v)", c.line, word, got, err)
			}
		}
		for _, word := range strings.Fields(c.not) {
			if has[word] {
				t.Errorf("%q: %q is in %q", c.line, word, got)
			}
		}
	}
}

// The other shells' scripts have each subcommand and flag, and the shells accept them.
func TestOtherCompletions(t *testing.T) {
	for shell, check := range map[string][]string{"zsh": {"-n"}, "fish": {"--no-execute"}} {
		script := completions[shell]()
		for _, word := range append(names(), "on-revoke", "tls-server-name", "grace", "raise") {
			if !strings.Contains(script, word) {
				t.Errorf("%s: no %s", shell, word)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, check...)
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
		}
	}
}

// Each -h has examples, and a flag of each kind.
func TestHelp(t *testing.T) {
	for _, c := range commands() {
		text := output(t, 0, strings.Fields(c.name+" -h")...)
		for _, part := range []string{"usage: lockrun " + c.name, "Examples:\n  lockrun ", "Exit codes:"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q -h: %q is not in\n%s", c.name, part, text)
			}
		}
		for _, example := range c.examples {
			example, _, _ = strings.Cut(example, "  #")
			if _, rest, err := find(strings.Fields(example)); err != nil {
				t.Errorf("%q: %v", example, err)
			} else if rest = flagsIn(rest); len(rest) > 0 {
				f := c.flagsOf(&options{})
				for _, name := range rest {
					if f.Lookup(name) == nil {
						t.Errorf("%q: no flag %q", example, name)
					}
				}
			}
		}
	}
}

// flagsIn returns the names of the flags before -- or a pipe.
func flagsIn(words []string) (all []string) {
	for _, word := range words {
		if word == "--" || word == "|" {
			break
		}
		if name, found := strings.CutPrefix(word, "-"); found {
			all = append(all, name)
		}
	}
	return all
}
