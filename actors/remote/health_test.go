package remote_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The health service says that the server serves as long as it is connected to ZooKeeper, and never
// after a drain has begun.
func TestHealth(t *testing.T) {
	t.Parallel()
	zk := embedded.Run(t)
	s := serve(t, zk.Addr(), remote.ServerConfig{})
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	becomes := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, service := range []string{"", "actorlock.LockServer"} {
			zktest.Eventually(t, zktest.TimeLimit, func() bool {
				now, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
				return err == nil && now.Status == want
			}, "%q becomes %v", service, want)
		}
	}
	becomes(healthpb.HealthCheckResponse_SERVING)
	zk.Halt()
	becomes(healthpb.HealthCheckResponse_NOT_SERVING)
	zk.Restart()
	becomes(healthpb.HealthCheckResponse_SERVING)
	if err := s.server.Drain(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	becomes(healthpb.HealthCheckResponse_NOT_SERVING)
	s.server.ChangeSession(&messages.SessionChanged{State: messages.SessionState_CONNECTED})
	becomes(healthpb.HealthCheckResponse_NOT_SERVING)
}
