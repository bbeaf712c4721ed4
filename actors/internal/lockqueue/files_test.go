package lockqueue

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/fileorder"
)

func TestOrderOfFiles(t *testing.T) {
	t.Parallel()
	fileorder.Check(t)
}
