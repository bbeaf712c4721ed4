package host

import (
	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// registryMaps is how many maps the registry of a private protoactor system has. protoactor makes
// 1,024 of them, with 32 locks each, which take 2.9 MB.
const registryMaps = 4

// newActorSystem returns a protoactor system with a small registry. (Several Systems cannot share a
// protoactor system instead: each logs to a logger of its own, and one that was made in a bubble of
// testing/synctest is of no use outside.) Nothing else uses the system yet.
func newActorSystem(options ...actor.ConfigOption) *actor.ActorSystem {
	system := actor.NewActorSystem(options...)
	all := system.ProcessRegistry.LocalPIDs
	small := &actor.SliceMap{LocalPIDs: make([]cmap.ConcurrentMap, registryMaps)}
	for i := range small.LocalPIDs {
		small.LocalPIDs[i] = cmap.New()
	}
	for _, some := range all.LocalPIDs {
		some.IterCb(func(name string, process any) { small.GetBucket(name).Set(name, process) })
	}
	system.ProcessRegistry.LocalPIDs = small
	return system
}
