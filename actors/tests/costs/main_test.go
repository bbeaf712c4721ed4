package costs

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// processCommands are the commands of the processes in which something is measured.
var processCommands = map[string]locktest.Command{"measure": measure}

func TestMain(m *testing.M) { locktest.Main(m, processCommands) }
