//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-"+consumerFlag { // started by run
		main()
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes that run starts
	zktest.Main(m)
}

func TestRun(t *testing.T) {
	zktest.OneRunIn(t, 4) // it waits for the ends of sessions, as a user sees them
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		check(t, "")
	})
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		check(t, s.Addr())
	})
}

func check(t *testing.T, servers string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, consumer{servers: servers, session: 4 * time.Second, shards: 12}, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	want := regexp.MustCompile(`^shard +0  1  2 .* 11
ann joins +a(  a){11} .*
bob joins .*
cat joins .*
bob is killed .*
cat is paused .*
  a write of cat arrives now, and the table refuses it: token \S{42} is older than \S{42}
cat goes on .*
dan joins .*
ann leaves .*
each of [1-9]\d* messages has had its effect once
$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("printed\n%s", &out)
	}
}

func TestRefusals(t *testing.T) {
	if err := run(t.Context(), consumer{shards: 3}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "-shards 3: it must be at least 4") {
		t.Errorf("the error is %v", err)
	}
}

// The table counts a message that comes twice, or is left out, as wrong.
func TestTableFindsDoubles(t *testing.T) {
	for _, amounts := range [][]int{{0, 1, 1}, {0, 2}} {
		table := &table{rows: make([]tableRow, 1)}
		var next int
		for _, amount := range amounts {
			if err := (rows{table}).Add(ConsumerRequest{Amount: amount}, &next); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := table.check(); err == nil {
			t.Errorf("the amounts %v are right", amounts)
		}
	}
}
