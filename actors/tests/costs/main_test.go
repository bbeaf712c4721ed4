package costs

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, map[string]locktest.Command{"measure": measure}) }
