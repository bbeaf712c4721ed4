package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/examples/internal/lockflags"
)

// command is one way to use lockrun.
type command struct {
	name      string // empty for the command that runs another one under a lock
	arguments string
	about     string
	examples  []string                       // without the word lockrun
	define    func(o *options, flags *flags) // its own flags; nil if it has none
	check     func(o *options) error         // also takes the arguments from o.args
	run       func(o *options) (int, error)  // returns the exit code
	connects  bool                           // it has the flags of a server
}

// commands is the table of lockrun's uses. The first one has no name.
func commands() []*command {
	return []*command{runCommand, lsCommand, whoCommand, watchCommand, revokeCommand, breakCommand, verifyCommand, clientsCommand,
		generationCommand, completionCommand}
}

// flags are the flags of one command.
type flags struct {
	*flag.FlagSet
	values map[string]string // of a flag with few values: the values, separated by spaces; for completion
	files  []string          // names of the flags whose values are files
}

// find returns the command that the arguments name, and its own arguments.
func find(args []string) (*command, []string, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runCommand, args, nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c, args[1:], nil
		}
	}
	return nil, nil, fmt.Errorf("subcommand %q: it must be one of %s; a command to run follows the flags and --, see lockrun -h",
		args[0], strings.Join(names(), ", "))
}

func names() (all []string) {
	for _, c := range commands() {
		if c.name != "" {
			all = append(all, c.name)
		}
	}
	return all
}

// flagsOf returns the flags of the command, which set o.
func (c *command) flagsOf(o *options) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("lockrun", flag.ContinueOnError), values: map[string]string{}}
	f.SetOutput(io.Discard) // main prints the error
	if c.define != nil {
		c.define(o, f)
	}
	if c.connects {
		o.Flags.Define(f.FlagSet)
		f.files = append(f.files, o.Flags.Files()...)
		f.values["acl"] = strings.Join(lockflags.ACLs, " ")
	}
	return f
}

// parse returns the options in the arguments and the environment. It prints the usage for -h, and
// returns flag.ErrHelp.
func (c *command) parse(args []string) (*options, error) {
	o := &options{Flags: lockflags.Flags{Warn: warn}, forever: true}
	f := c.flagsOf(o)
	var err error
	o.args, err = c.scan(f, args)
	if errors.Is(err, flag.ErrHelp) {
		c.help(f)
	}
	if err != nil {
		return nil, err
	}
	if c.connects {
		if err := o.Flags.ReadEnvironment(f.FlagSet, os.LookupEnv); err != nil {
			return nil, err
		}
	}
	if c.name == "" && o.path == "" && len(o.args) > 0 && slices.Contains(names(), o.args[0]) {
		return nil, fmt.Errorf("%s is a subcommand, which comes first: lockrun %s [flags] ...", o.args[0], o.args[0])
	}
	f.Visit(func(set *flag.Flag) {
		o.forever = o.forever && set.Name != "wait"
		o.shares = o.shares || set.Name == "partitions"
	})
	if c.connects {
		if err := o.Flags.Check(); err != nil {
			return nil, err
		}
	}
	return o, c.check(o)
}

// scan parses the flags and returns the other arguments. Flags may follow the arguments of a
// subcommand.
func (c *command) scan(f *flags, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		left := f.Args()
		parsed := len(args) - len(left)
		ended := parsed > 0 && args[parsed-1] == "--"
		if c.name == "" || ended || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// help prints the usage.
func (c *command) help(f *flags) {
	fmt.Printf("usage: lockrun %s\n%s\n", strings.TrimSpace(c.name+" "+c.arguments), c.about)
	fmt.Print("\nExamples:\n")
	for _, example := range c.examples {
		fmt.Println("  lockrun", example)
	}
	if c.name == "" {
		fmt.Print("\nSubcommands, each with -h of its own:\n")
		for _, sub := range commands()[1:] {
			about, _, _ := strings.Cut(sub.about, "\n")
			fmt.Printf("  %-38s %s\n", sub.name+" "+short(sub.arguments), about)
		}
	}
	fmt.Print("\nFlags:\n")
	f.SetOutput(os.Stdout)
	f.PrintDefaults()
	if c.connects {
		fmt.Printf("\nA flag of the server that is left out is taken from the environment: %s for -%s, and so on.\n%s\n",
			lockflags.EnvName("zk"), "zk", lockflags.AuthHelp)
	}
	fmt.Print("\nExit codes: 0; " + exitCodes + "\n")
}

// short returns the arguments of a subcommand without its flags.
func short(arguments string) string {
	words := strings.Fields(arguments)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "[") }), " ")
}
