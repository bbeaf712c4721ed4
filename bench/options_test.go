package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	o, err := parse([]string{"-scenarios", "hot64, uncontended", "-peers", "zklock,actorlock", "-seconds", "0.5", "-rounds", "7", "-out", "x", "-zk", "h:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := accepted(o.scenarios); got != "uncontended, hot64" {
		t.Errorf("scenarios are %s", got)
	}
	if got := accepted(o.peers); got != "actorlock, zklock" {
		t.Errorf("peers are %s", got)
	}
	if o.length != time.Second/2 || o.rounds != 7 || o.out != "x" || o.zk != "h:1" {
		t.Errorf("got %+v", o)
	}
	if o, err = parse(nil, nil); err != nil || len(o.scenarios) != len(scenarios) || len(o.peers) != len(peers) || o.rounds != 3 {
		t.Errorf("by default %+v, %v", o, err)
	}
}

func TestInvalidOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, c := range []struct{ args, want string }{
		{"-scenarios hot65", `"hot65": accepted are all, or a list of ` + accepted(scenarios)},
		{"-peers actorlock,unknown", `"unknown": accepted are all, or a list of ` + accepted(peers)},
		{"-peers actorlock,", `""`},
		{"-seconds 0", "-seconds 0: it must be from 0.01 to 3600"},
		{"-seconds NaN", "-seconds NaN"},
		{"-seconds 3s", `"3s"`},
		{"-rounds 2", "-rounds 2: it must be from 3 to 1000"},
		{"-rounds 1001", "-rounds 1001"},
		{"-partitions 0", "-partitions 0: it must be from 1 to 4096"},
		{"-partitions 4097", "-partitions 4097"},
		{"-round 3", "-round"},
		{"now", `"now"`},
		{"-peers raw -scenarios fleet", "-peers raw: none of them can be used in -scenarios fleet"},
		{"-out= -seconds 1", "-out is empty"},
		{"-out " + file, file},
	} {
		code, err := bench(context.Background(), strings.Fields(c.args), nil)
		if code != exitUsage || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, error %v; want %d and %s", c.args, code, err, exitUsage, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	code, err := bench(context.Background(), []string{"-h"}, &out)
	if code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, want := range []string{"-scenarios", "uncontended", "-peers", "zklock", "-rounds", "-seconds", "-out", "-zk"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not have %s:\n%s", want, out.String())
		}
	}
}
