//go:build unix

// Command fencing shows how the late write of a lock's paused holder is refused:
//
//	go run ./examples/fencing [-zk SERVERS]
//
// Without -zk it starts the embedded server. The holder is a process of its own. The program
// stops it by a signal, between its check of the lock and its write, until the program itself
// holds the lock.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	holder := flag.String(holderFlag, "", "used by the program itself: run as the holder of this lock")
	servers := flag.String("zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	session := flag.Duration("session", 4*time.Second, "the session timeout, with -zk; 4s is the least that servers grant by default")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *holder != "" {
		err = hold(ctx, *servers, *session, *holder)
	} else {
		err = run(ctx, *servers, *session, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

// run starts the holder, pauses it, and acquires the lock during the pause.
func run(ctx context.Context, servers string, session time.Duration, out io.Writer) error {
	if servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{TickTime: 200 * time.Millisecond})
		if err != nil {
			return err
		}
		defer server.Close()
		servers, session = server.Addr(), 4*time.Second
	}
	locks, err := actors.Connect(ctx, servers, actors.Config{SessionTimeout: session})
	if err != nil {
		return err
	}
	defer locks.Close()
	path := "/fencing/orders-" + rand.Text()[:8] // used by no other run
	defer locks.Multi(context.WithoutCancel(ctx), &zk.DeleteRequest{Path: stock(path), Version: -1})

	other, err := start(ctx, servers, session, path)
	if err != nil {
		return err
	}
	defer other.kill()
	token, node, err := other.grant()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Process %d takes the lock %s, token %v\n", other.pid(), path, token)
	if err := other.forward(out, 1); err != nil {
		return err
	}
	var shop store // a resource outside of ZooKeeper
	if err := errors.Join(shop.write(token, "42 left"), locks.VerifyToken(ctx, node, token)); err != nil {
		return err
	}
	fmt.Fprintln(out, "  ZooKeeper confirms to a third party that its token is valid")

	if err := other.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	fmt.Fprintln(out, "It has checked that its grant holds, and is paused before its next write")
	pausedAt := time.Now()
	grant, err := locks.Mutex(path).Lock(ctx) // blocks until the session of the holder has expired
	if err != nil {
		return err
	}
	defer grant.Release()
	fmt.Fprintf(out, "After %.1f s its session has expired. We have the lock, token %v\n", time.Since(pausedAt).Seconds(), grant.Token())
	if grant.Token().Compare(token) <= 0 {
		return fmt.Errorf("token %v comes after %v", grant.Token(), token)
	}
	old := locks.VerifyToken(ctx, node, token)
	if !errors.Is(old, actors.ErrNotHeld) {
		return fmt.Errorf("the token of a session that has expired: %w", old)
	}
	fmt.Fprintln(out, "  ZooKeeper refuses to confirm its token:", old)
	_, err = locks.Multi(ctx, grant.Guard(&zk.SetDataRequest{Path: stock(path), Data: []byte("41 left"), Version: -1})...)
	if err := errors.Join(err, shop.write(grant.Token(), "41 left")); err != nil {
		return err
	}
	fmt.Fprintln(out, `  We write "41 left" under our guard`)

	if err := other.signal(syscall.SIGCONT); err != nil {
		return err
	}
	fmt.Fprintln(out, "It wakes up and goes on:")
	if err := other.forward(out, 2); err != nil {
		return err
	}
	late := shop.write(token, "43 left")
	if late == nil {
		return errors.New("the store has accepted a late write")
	}
	fmt.Fprintln(out, "  A store outside of ZooKeeper refuses it by its token:", late)
	if _, err := locks.Multi(ctx, &zk.CheckVersionRequest{Path: stock(path), Version: 1}); err != nil {
		return fmt.Errorf("another client has written: %w", err)
	}
	fmt.Fprintf(out, "The znode is as we have left it, and the store holds %q\n", shop.value)
	return other.wait()
}

// hold runs in the process that run pauses, and prints what it does.
func hold(ctx context.Context, servers string, session time.Duration, path string) error {
	locks, err := actors.Connect(ctx, servers, actors.Config{SessionTimeout: session})
	if err != nil {
		return err
	}
	defer locks.Close()
	grant, err := locks.Mutex(path).Lock(ctx)
	if err != nil {
		return err
	}
	defer grant.Release()
	fmt.Println(grant.Token(), grant.Node())
	if _, err := locks.Multi(ctx, grant.Guard(&zk.CreateRequest{Path: stock(path), Data: []byte("42 left")})...); err != nil {
		return err
	}
	if err := grant.Err(); err != nil {
		return err
	}
	fmt.Println(`It writes "42 left" under its guard`)
	if err := awaitResume(); err != nil { // a pause can come between any two lines of a program
		return err
	}
	for {
		// The library sends nothing without a session. It repeats the write until it has the
		// next session, so that ZooKeeper itself refuses.
		_, err := locks.Multi(ctx, grant.Guard(&zk.SetDataRequest{Path: stock(path), Data: []byte("43 left"), Version: -1})...)
		var refused *zkbridge.OpError
		if errors.As(err, &refused) {
			fmt.Println("ZooKeeper refuses its write:", refused)
			break
		}
		if err == nil || ctx.Err() != nil {
			return fmt.Errorf("a late write: %w", errors.Join(err, ctx.Err()))
		}
		time.Sleep(20 * time.Millisecond)
	}
	<-grant.Done()
	fmt.Println("Its grant is over:", grant.Err())
	return nil
}

// stock returns the path of the resource that a lock protects: a node that only holders write.
func stock(path string) string { return path + "-stock" }
