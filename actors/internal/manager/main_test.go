package manager

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }
