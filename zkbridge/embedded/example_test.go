package embedded_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func Example() {
	server, err := embedded.Start(embedded.ServerConfig{})
	if err != nil {
		panic(err)
	}
	defer server.Close()

	conn, _, err := zk.Connect([]string{server.Addr()}, 30*time.Second, zk.WithLogger(noLog{}), zk.WithDialer(dialWithoutLimit))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	path, err := conn.Create("/queue-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output: /queue-0000000000 <nil>
}

// A service announces itself with an ephemeral node. What does it do when its
// session expires?
func ExampleServer_Expire() {
	server, err := embedded.Start(embedded.ServerConfig{}) // in a test: embedded.Run(t)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	// go-zookeeper waits for a second once it has tried each server.
	servers := []string{server.Addr(), server.Addr(), server.Addr()}
	states := make(chan zk.State, 100) // go-zookeeper's own channel drops what comes behind six events that wait
	conn, _, err := zk.Connect(servers, 30*time.Second, zk.WithLogger(noLog{}), zk.WithDialer(dialWithoutLimit),
		zk.WithEventCallback(func(e zk.Event) { states <- e.State }))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	announce := func() {
		path, err := conn.Create("/web-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		fmt.Println(path, err)
	}

	await := func(state zk.State) {
		for s := range states {
			if s == state {
				return
			}
		}
	}

	await(zk.StateHasSession)
	announce()
	server.Expire(conn.SessionID())
	await(zk.StateExpired)
	await(zk.StateHasSession) // while it connects, go-zookeeper refuses what it has not sent
	announce()                // without this the service would be forgotten
	for _, session := range server.Sessions() {
		fmt.Println(session.Ephemerals)
	}
	// Output:
	// /web-0000000000 <nil>
	// /web-0000000001 <nil>
	// [/web-0000000001]
}

// A reply is lost after the commit: the client cannot know what happened.
func ExampleServer_Inject() {
	server, err := embedded.Start(embedded.ServerConfig{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fault := server.Inject(embedded.Fault{Op: embedded.OpCreate, Path: "/x", Action: embedded.DropReply})

	// go-zookeeper waits for a second once it has tried each server.
	servers := []string{server.Addr(), server.Addr()}
	conn, _, err := zk.Connect(servers, 30*time.Second, zk.WithLogger(noLog{}), zk.WithDialer(dialWithoutLimit))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	_, err = conn.Create("/x", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println(fault.Firings()[0].Path)
	found, _, err := conn.Exists("/x")
	fmt.Println(found, err)
	// Output:
	// zk: connection closed
	// /x
	// true <nil>
}
