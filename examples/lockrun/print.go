package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/actorlock/actorlock/examples/internal/console"
)

// printJSON prints a value as one line of JSON, with the escapes of JSON in place of what is not
// printable.
func printJSON(value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	var line strings.Builder
	for _, r := range strings.TrimSuffix(text.String(), "\n") {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&line, `\u%04x`, unit)
		}
	}
	_, err := fmt.Println(line.String())
	return err
}

// say prints a line to standard output.
func say(format string, args ...any) { fmt.Println(console.Lines(fmt.Sprintf(format, args...))) }

// print prints the queue as a table.
func (q lockQueue) print(w io.Writer) {
	fmt.Fprintln(w, console.Printable(q.title()))
	if len(q.all) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLACE\tHOLDS\tKIND\tQUEUED\tWHO\tSESSION\tNODE\tDATA")
	for _, c := range q.all {
		holds := "waits"
		if c.Holds {
			holds = "holds"
		}
		fmt.Fprintln(table, console.Row(c.Place, holds, c.Kind, c.when(), c.ownerAndProcess(), c.session(), c.nodeName(), c.Data))
	}
	table.Flush()
}

// title is the line about a lock as a whole.
func (q lockQueue) title() string {
	holders := len(q.holders())
	title := q.path
	if q.recipe != "" {
		title += ": " + q.recipe
	}
	if q.permits > 0 {
		title += " of " + count(q.permits, "permit")
	} else if numbers := q.numbers(); len(numbers) > 1 {
		title += fmt.Sprintf(" of %v permits, on which its processes do not agree", numbers)
	}
	if len(q.all) == 0 {
		return title + ": no holder and no waiter (the lock is free, or the path or chroot is another one)"
	}
	return fmt.Sprintf("%s, %s, %s", title, count(holders, "holder"), count(len(q.all)-holders, "waiter"))
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// when returns the time at which the contender has joined the queue, and the duration since then.
func (c contender) when() string {
	if c.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%v)", c.Since.Local().Format(time.DateTime), max(time.Since(c.Since), 0).Round(time.Second))
}

// session returns the session, or that there is none.
func (c contender) session() string {
	if c.Persistent {
		return "none (persistent)"
	}
	return c.Session
}

// ownerAndProcess returns the owner and the process that the contender's node has, as in
// "billing, backup[123] on host1".
func (c contender) ownerAndProcess() string {
	process := c.Program
	if c.PID != 0 {
		process += fmt.Sprintf("[%d]", c.PID)
	}
	if c.Host != "" {
		process = strings.TrimSpace(process + " on " + c.Host)
	}
	if c.Owner != "" && process != "" {
		return c.Owner + ", " + process
	}
	return c.Owner + process
}

// name returns a name of the contender: its owner and process, or else its session.
func (c contender) name() string {
	if name := c.ownerAndProcess(); name != "" {
		return name
	}
	if c.Session == "" {
		return "a client whose node may not be read"
	}
	if c.Persistent {
		return "a persistent node, which no end of a session deletes"
	}
	if c.Data != "" {
		return fmt.Sprintf("a client of session %s (%s)", c.Session, c.Data)
	}
	return "a client of session " + c.Session
}
