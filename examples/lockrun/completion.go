package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

var completionCommand = &command{
	name:      "completion",
	arguments: "bash|zsh|fish",
	about:     "Prints the script that completes lockrun's command lines in a shell.",
	examples: []string{
		"completion bash > /etc/bash_completion.d/lockrun",
		`completion zsh > "${fpath[1]}/_lockrun"`,
		"completion fish > ~/.config/fish/completions/lockrun.fish",
	},
	check: func(o *options) error {
		if len(o.args) != 1 || completions[o.args[0]] == nil {
			return fmt.Errorf("completion %s: it must be one of bash, fish, zsh", strings.Join(o.args, " "))
		}
		return nil
	},
	run: func(o *options) (int, error) {
		fmt.Print(completions[o.args[0]]())
		return 0, nil
	},
}

// completions is filled in by init, since the scripts contain the table of commands.
var completions map[string]func() string

func init() {
	completions = map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
}

// eachFlag calls f for all flags of a command, in order, with the values or "file" if it has a file
// as its value.
func eachFlag(c *command, f func(set *flag.Flag, values string)) {
	all := c.flagsOf(&options{})
	all.VisitAll(func(set *flag.Flag) {
		values := all.values[set.Name]
		if slices.Contains(all.files, set.Name) {
			values = "file"
		}
		f(set, values)
	})
}

func isBool(set *flag.Flag) bool {
	b, ok := set.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// bashCompletion completes subcommands, flags and their values, and the command behind --.
func bashCompletion() string {
	var b strings.Builder
	b.WriteString(`# completion of lockrun for bash
_lockrun() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			((i + 1 == COMP_CWORD)) && COMPREPLY=($(compgen -c -- "$cur"))
			return
		fi
	done
	case ${COMP_WORDS[1]} in
`)
	for _, c := range append(commands()[1:], runCommand) {
		pattern := c.name
		if c == runCommand {
			pattern = "*"
		}
		var names []string
		fmt.Fprintf(&b, "\t%s)\n\t\tcase $prev in\n", pattern)
		eachFlag(c, func(set *flag.Flag, values string) {
			names = append(names, "-"+set.Name)
			switch {
			case values == "file":
				fmt.Fprintf(&b, "\t\t-%s) return ;;\n", set.Name)
			case !isBool(set):
				fmt.Fprintf(&b, "\t\t-%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", set.Name, values)
			}
		})
		words := strings.Join(append(names, "-h"), " ")
		if c == completionCommand {
			words = "bash fish zsh -h"
		}
		fmt.Fprintf(&b, "\t\tesac\n\t\tCOMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", words)
	}
	fmt.Fprintf(&b, `	esac
	((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W %q -- "$cur"))
}
complete -o default -F _lockrun lockrun
`, strings.Join(names(), " "))
	return b.String()
}

// zshCompletion has zsh read the script for bash.
func zshCompletion() string {
	return "#compdef lockrun\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion()
}

func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# completion of lockrun for fish\n")
	for _, c := range commands() {
		when := "__fish_seen_subcommand_from " + c.name
		if c == runCommand {
			when = "not __fish_seen_subcommand_from " + strings.Join(names(), " ")
		} else {
			about, _, _ := strings.Cut(c.about, "\n")
			fmt.Fprintf(&b, "complete -c lockrun -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quoteFish(about))
		}
		eachFlag(c, func(set *flag.Flag, values string) {
			line := fmt.Sprintf("complete -c lockrun -n %s -o %s -d %s", quoteFish(when), set.Name, quoteFish(set.Usage))
			switch {
			case values == "file":
				line += " -r"
			case values != "":
				line += " -x -a " + quoteFish(values)
			case !isBool(set):
				line += " -x"
			}
			fmt.Fprintln(&b, line)
		})
	}
	fmt.Fprintf(&b, "complete -c lockrun -n '__fish_seen_subcommand_from completion' -f -a 'bash fish zsh'\n")
	return b.String()
}

func quoteFish(text string) string {
	text = strings.NewReplacer("`", "", `\`, `\\`, "'", `\'`).Replace(text)
	return "'" + text + "'"
}
