package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

var generationCommand = &command{
	name:      "generation",
	arguments: "[flags]",
	about: "Prints the generation with which the ensemble's tokens begin.\n" +
		"Raise it after a restore from a backup, or after a move of the locks to another ensemble, before\n" +
		"clients come back.",
	examples: []string{
		"generation -zk zk1:2181",
		"generation -zk zk1:2181 -raise",
	},
	define: func(o *options, f *flags) {
		defineJSON(o, f)
		f.BoolVar(&o.raise, "raise", false, "raise the generation first, and so all later tokens; all holders lose their locks")
	},
	check:    (*options).checkGeneration,
	run:      generation,
	connects: true,
}

func (o *options) checkGeneration() error {
	switch {
	case len(o.args) > 0:
		return fmt.Errorf("generation %s: no arguments are accepted beside the flags", o.args[0])
	case o.LockServers != "":
		return errors.New("-server: a lock server does not show or raise the generation: use -zk")
	}
	return nil
}

func generation(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		ctx, cancel := o.requestContext(ctx)
		defer cancel()
		read := locks.Generation
		if o.raise {
			read = locks.RaiseGeneration
		}
		g, err := read(ctx)
		switch {
		case err != nil:
			return err
		case o.json:
			return printJSON(map[string]uint64{"generation": g})
		}
		fmt.Println(g)
		return nil
	})
}
