package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/examples/internal/console"
)

var clientsCommand = &command{
	name:      "clients",
	arguments: "-server SERVERS [flags]",
	about:     "Lists the clients of lock servers: identity, address, lease, what they hold and wait for.\nlockrun itself is one of them. The rules of a lock server must allow it to inspect the path /.",
	examples: []string{
		"clients -server lock1:7400,lock2:7400 -tls-ca ca.pem -tls-cert me.pem -tls-key me.key",
		"clients -server lock1:7400 -insecure -json | jq '.[] | select(.held > 0) | .identity'",
	},
	define: defineJSON,
	check: func(o *options) error {
		switch {
		case len(o.args) > 0:
			return fmt.Errorf("clients %s: no arguments are accepted beside the flags", o.args[0])
		case o.LockServers == "":
			return errors.New("-server is missing: clients lists those of lock servers, as in -server lock1:7400")
		}
		return nil
	},
	run:      clients,
	connects: true,
}

// clientRow is a client of a lock server as -json prints it.
type clientRow struct {
	Server          string  `json:"server"`
	Number          uint64  `json:"number"`
	Identity        string  `json:"identity,omitempty"`
	Address         string  `json:"address"`
	Program         string  `json:"program,omitempty"`
	Connected       bool    `json:"connected"`
	LeaseLeft       float64 `json:"lease_left_seconds"`
	Held            int     `json:"held"`
	Waiting         int     `json:"waiting"`
	PendingMessages int     `json:"pending_messages"`
	PendingBytes    int     `json:"pending_bytes"`
}

// clients asks each server for its clients. It prints those of the servers that answer, also if others do
// not.
func clients(o *options) (code int, err error) {
	all := []clientRow{}
	answered := false
	for server := range strings.SplitSeq(o.LockServers, ",") {
		of := *o
		of.LockServers = strings.TrimSpace(server)
		rows, failed, why := of.clientsOfServer()
		if why != nil {
			why = fmt.Errorf("%s: %w", of.LockServers, why)
		}
		if code, err = max(code, failed), errors.Join(err, why); failed > bySignal {
			return code, err
		}
		all, answered = append(all, rows...), answered || failed == 0
	}
	switch {
	case !answered:
	case o.json:
		err = errors.Join(printJSON(all), err)
	default:
		printClients(all)
	}
	return code, err
}

// clientsOfServer returns the clients of one server, or an exit code and an error.
func (o *options) clientsOfServer() (rows []clientRow, code int, err error) {
	if down := <-o.findUnreachable(); down != nil { // Dial would try again
		return nil, exitUnavailable, down
	}
	code, err = withLocksWithin(o, lookLimit, func(ctx context.Context, locks *actors.Locks) error {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		states, err := remote.Clients(ctx, locks)
		for _, c := range states {
			rows = append(rows, clientRow{o.LockServers, c.Number, c.Identity, c.Address, c.Program, c.Connected, c.LeaseLeft.Round(time.Millisecond).Seconds(),
				c.Held, c.Waiting, c.PendingMessages, c.PendingBytes})
		}
		return err
	})
	return rows, code, err
}

func printClients(all []clientRow) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tNUMBER\tIDENTITY\tADDRESS\tPROGRAM\tLEASE\tHELD\tWAITING\tPENDING")
	for _, c := range all {
		lease := fmt.Sprintf("%.1fs", c.LeaseLeft)
		if !c.Connected {
			lease += " (away)"
		}
		fmt.Fprintln(table, console.Row(c.Server, c.Number, c.Identity, c.Address, c.Program, lease, c.Held, c.Waiting, fmt.Sprintf("%dB", c.PendingBytes)))
	}
	table.Flush()
}
