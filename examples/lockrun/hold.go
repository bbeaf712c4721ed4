package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// hold runs the command, and stops it if the grant is lost.
func hold(o *options, program string, locks *actors.Locks, grant *actors.Grant, signals <-chan os.Signal) (int, error) {
	held := time.Now()
	cmd := exec.Command(program, o.command[1:]...)
	cmd.Args[0] = o.command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"ACTORLOCK_TOKEN="+grant.Token().String(), "ACTORLOCK_PATH="+grant.Path(), "ACTORLOCK_NODE="+grant.Node(),
		heldVariable+"="+strings.Join(append(heldAround(), path.Base(grant.Node())), " "))
	g, err := start(cmd)
	if err != nil {
		release(o, grant, held)
		return notStarted(err)
	}
	defer g.looks.Wait() // they may warn
	defer g.stopGuard()
	defer g.returnTerminal()
	continued, revoked := catchContinue(), grant.Revoked()
	g.looks.Go(g.keepLooking)
	for {
		select {
		case s := <-signals:
			g.forward(s)
		case s := <-g.stops:
			g.onStop(s)
		case <-continued:
			g.onContinue()
		case <-revoked:
			revoked = nil
			o.forwardRevocation(g)
		case <-grant.Done():
			lost := time.Now()
			if err := g.stop(o.killAfter(grant.Err(), grant.Session(), locks)); err != nil {
				return exitNotStopped, fmt.Errorf("the lock was lost after %v: %w; %w", lost.Sub(held).Round(time.Millisecond), grant.Err(), g.notStopped(lost, err))
			}
			return exitLost, fmt.Errorf("the command was stopped because its lock was lost after %v: %w", since(held), grant.Err())
		case <-g.ended:
			if lost := grant.Err(); lost != nil {
				// The command may have left processes behind.
				if err := g.stop(o.killAfter(grant.Err(), grant.Session(), locks)); err != nil {
					return exitNotStopped, fmt.Errorf("the lock was lost when the command ended: %w; %w", lost, g.notStopped(time.Now(), err))
				}
				return exitLost, fmt.Errorf("the lock was lost when the command ended: %w", lost)
			}
			release(o, grant, held)
			g.endTerminalJob()
			return g.code, nil
		}
	}
}

// forwardRevocation signals the command after another client has asked for the lock.
func (o *options) forwardRevocation(g *group) {
	if o.onRevoke == "" {
		warn("another client asks for %s; the command goes on (-on-revoke TERM would end it)", o.path)
		return
	}
	o.printVerbose("another client asks for %s: the command gets the signal %s", o.path, o.onRevoke)
	g.forward(revokeSignal(o.onRevoke))
}

// sudoFirst is the advice for a command that lockrun may not signal.
const sudoFirst = "have lockrun itself run as that user, as in: sudo lockrun -lock ... -- CMD"

// forward sends the command a signal.
func (g *group) forward(s os.Signal) {
	g.warnUnless(g.signal(s), func(err error) { warn("the command does not get the signal %q: %v; %s", s, err, sudoFirst) })
}

// killAfter returns the time between SIGTERM and SIGKILL after a loss of a lock of the session: half of the
// margin, or less if lockrun was paused.
func (o *options) killAfter(lost error, session int64, locks *actors.Locks) time.Duration {
	s := locks.Session()
	half := o.margin() / 2
	if o.LockServers != "" {
		half = min(half, s.Timeout/8) // the margin of a lease is a quarter of what is before it, at most
	}
	switch {
	case !errors.Is(lost, actors.ErrSessionLost):
		return half
	case s.ID != session || s.State == messages.SessionState_CONNECTED:
		return 0 // the next session is open already
	}
	return min(half, time.Until(s.Deadline.Add(half)))
}

// release waits until ZooKeeper has deleted the node, so that the lock is free at the end of
// lockrun.
func release(o *options, grant *actors.Grant, held time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), min(o.Session, 5*time.Second))
	defer cancel()
	if err := grant.Unlock(ctx); err != nil {
		until := fmt.Sprintf("session expires, within %v", o.Session)
		if o.LockServers != "" {
			until = "lease ends"
		}
		warn("the lock stays taken until its %s: %v", until, plain(err))
		return
	}
	o.printVerbose("released %s after %v", o.path, since(held))
}
