package embedded_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func Example() {
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		panic(err)
	}
	defer server.Close()

	conn, _, err := zk.Connect([]string{server.Addr()}, 5*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	path, err := conn.Create("/queue-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output: /queue-0000000000 <nil>
}

// A reply is lost after the commit: the client cannot know what happened.
func ExampleServer_Inject() {
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fault := server.Inject(embedded.Fault{Op: embedded.OpCreate, Path: "/x", Action: embedded.DropReply})

	conn, _, err := zk.Connect([]string{server.Addr()}, 5*time.Second, zk.WithLogger(quiet{}))
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
