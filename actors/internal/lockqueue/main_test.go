package lockqueue

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
)

func TestMain(m *testing.M) { machinetest.Main(m, 100, 500) }
