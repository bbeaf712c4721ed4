package actors_test

import (
	"maps"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
)

func TestMain(m *testing.M) {
	commands := maps.Clone(processCommands)
	commands["measure"] = measure
	locktest.Main(m, commands)
}
