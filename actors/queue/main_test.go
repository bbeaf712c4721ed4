package queue

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "500") // unless the command line says otherwise
	goleak.VerifyTestMain(m)
}
