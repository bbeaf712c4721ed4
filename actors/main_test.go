package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil) }
