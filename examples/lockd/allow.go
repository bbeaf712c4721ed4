package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// rule is a line of the file of -allow.
type rule struct {
	line     int // from 1
	allows   bool
	identity string // of a client; behind it a * stands for any text
	path     string // of the locks at and below it
	verbs    []remote.Verb
}

// verbs are the verbs of the rules.
var verbs = []remote.Verb{remote.VerbAcquire, remote.VerbInspect, remote.VerbChange}

const ruleForm = "it must be: allow|deny IDENTITY PATH VERB[,VERB], as in: allow spiffe://prod/backup /locks/backup acquire,inspect"

// parseRules returns the rules of a text. It ignores empty lines and those that begin with #. Its
// errors have the number of the line.
func parseRules(text string) (rules []rule, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		r, err := parseRule(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		r.line = number
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(fields []string) (r rule, err error) {
	if len(fields) != 4 || fields[0] != "allow" && fields[0] != "deny" {
		return r, fmt.Errorf("%q: %s", strings.Join(fields, " "), ruleForm)
	}
	r.allows, r.identity, r.path = fields[0] == "allow", fields[1], fields[2]
	if star := strings.Index(r.identity, "*"); star >= 0 && star < len(r.identity)-1 {
		return r, fmt.Errorf("identity %q: a * is accepted at the end only", r.identity)
	}
	if err := checkRulePath(r.path); err != nil {
		return r, err
	}
	for name := range strings.SplitSeq(fields[3], ",") {
		if name == "*" {
			r.verbs = append(r.verbs, verbs...)
			continue
		}
		verb, err := parseVerb(name)
		if err != nil {
			return r, err
		}
		r.verbs = append(r.verbs, verb)
	}
	return r, nil
}

func checkRulePath(path string) error {
	if err := zkpath.Check(path); err != nil && path != "/" {
		return fmt.Errorf("path: %w", err)
	}
	return nil
}

func parseVerb(name string) (remote.Verb, error) {
	if verb := remote.Verb(name); slices.Contains(verbs, verb) {
		return verb, nil
	}
	return "", fmt.Errorf("verb %q: accepted is acquire, inspect, change, and * for all of them in a rule", name)
}

// matches reports whether the rule is about what a client does.
func (r rule) matches(identity, path string, verb remote.Verb) bool {
	prefix, any := strings.CutSuffix(r.identity, "*")
	return (identity == r.identity || any && strings.HasPrefix(identity, prefix)) &&
		(r.path == "/" || path == r.path || strings.HasPrefix(path, r.path+"/")) &&
		slices.Contains(r.verbs, verb)
}

// decide returns the first rule that is about what a client does. Without one the client may not.
func decide(rules []rule, identity, path string, verb remote.Verb) (r rule, found bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.matches(identity, path, verb) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// allowFile are the rules of a file, which is read again when it has changed. A file that cannot be
// used then changes nothing, and a line says so. The rules concern what clients ask for from then on:
// what a client holds it keeps.
type allowFile struct {
	name string
	warn func(format string, args ...any)

	mu     sync.Mutex
	stamp  string
	looked time.Time
	rules  []rule
}

// lookAgain is how long a change of the rules may go unseen.
const lookAgain = time.Second

func openAllowFile(name string, warn func(format string, args ...any)) (*allowFile, error) {
	a := &allowFile{name: name, warn: warn}
	return a, a.reread()
}

// reread reads the file. Its error is that it cannot be used.
func (a *allowFile) reread() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rereadLocked(lockflags.Stamp(a.name))
}

func (a *allowFile) rereadLocked(stamp string) error {
	a.stamp, a.looked = stamp, time.Now()
	text, err := os.ReadFile(a.name)
	var rules []rule
	if err == nil {
		rules, err = parseRules(string(text))
	}
	if err != nil {
		return fmt.Errorf("-allow %s: %w", a.name, err)
	}
	a.rules = rules
	return nil
}

// now returns the rules, read again if the file has changed.
func (a *allowFile) now() []rule {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.looked) >= lookAgain {
		a.looked = now
		if stamp := lockflags.Stamp(a.name); stamp != a.stamp {
			if err := a.rereadLocked(stamp); err != nil {
				a.warn("the changed rules cannot be used, and those before count on: %v", err)
			}
		}
	}
	return a.rules
}

// allow implements remote.ServerConfig.Allow.
func (a *allowFile) allow(client remote.Peer, path string, verb remote.Verb) error {
	r, found := decide(a.now(), client.Name, path, verb)
	switch {
	case found && r.allows:
		return nil
	case found:
		return fmt.Errorf("%q may not %s %s, by line %d of the rules of the lock server", client.Name, verb, path, r.line)
	}
	return fmt.Errorf("%q may not %s %s: no rule of the lock server allows it", client.Name, verb, path)
}

// exitRefused is the exit code of -check-allow for what the rules do not allow.
const exitRefused = 1

// checkAllow prints what the rules of a file say of what a client does, given as IDENTITY VERB PATH.
func checkAllow(file string, args []string) (int, error) {
	if len(args) != 3 {
		return exitUsage, errors.New("-check-allow FILE IDENTITY VERB PATH: three arguments follow the file")
	}
	a, err := openAllowFile(file, warn)
	if err != nil {
		return exitUsage, err
	}
	verb, err := parseVerb(args[1])
	if err == nil {
		err = checkRulePath(args[2])
	}
	if err != nil {
		return exitUsage, err
	}
	r, found := decide(a.rules, args[0], args[2], verb)
	switch {
	case !found:
		fmt.Println("refused: no line is about it")
		return exitRefused, nil
	case !r.allows:
		fmt.Printf("refused by line %d\n", r.line)
		return exitRefused, nil
	}
	fmt.Printf("allowed by line %d\n", r.line)
	return 0, nil
}
