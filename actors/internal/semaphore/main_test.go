package semaphore

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
)

func TestMain(m *testing.M) { machinetest.Main(m, 500, 5000) }
