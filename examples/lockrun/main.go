// Command lockrun runs a command while holding a lock on ZooKeeper, and shows and breaks the locks
// of all clients:
//
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/backup -wait 1m -- ./backup.sh --full
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/data -mode read -- ./report.sh
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/tapes -mode semaphore -permits 3 -- ./backup.sh
//
//	lockrun -zk zk1:2181,zk2:2181 -lock /jobs -partitions 16 -- ./worker.sh {}
//
//	lockrun ls -zk zk1:2181 /locks              the locks below /locks: recipe, holders, waiters
//	lockrun who -zk zk1:2181 /locks/backup      the holders and waiters of a lock, in order
//	lockrun watch -zk zk1:2181 /locks/backup    the same, again at each change
//	lockrun revoke -zk zk1:2181 /locks/backup   asks the holders to release
//	lockrun break -zk zk1:2181 /locks/backup    takes the lock from its holders
//	lockrun verify -zk zk1:2181 TOKEN NODE      whether the grant of a token still holds
//	lockrun generation -zk zk1:2181 [-raise]    the generation of the ensemble's tokens
//	lockrun clients -server lock1:7400 ...      the clients of a lock server
//	lockrun completion bash                     the completion of a shell
//
//	lockrun -server lock1:7400,lock2:7400 -tls-ca ca.pem -tls-cert me.pem -tls-key me.key -lock /locks/backup -- ./backup.sh
//
// lockrun -h and lockrun SUBCOMMAND -h have more examples and all flags. Flags of a subcommand may
// stand before or behind its arguments.
//
// # The command
//
// The environment of the command has ACTORLOCK_TOKEN, the fencing token in its sortable text form,
// ACTORLOCK_PATH, the path of the lock, and ACTORLOCK_NODE, the full path of the holder's node. By
// ACTORLOCK_HELD a lockrun in the command notices that it would wait for a lock which a lockrun
// around it holds: it refuses with exit code 64, or 75 with -wait. The command runs in a process
// group of its own. lockrun forwards the signals INT, TERM, HUP and QUIT to the group. lockrun
// releases the lock when the command has ended, even if processes of the command still run in the
// background. lockrun stops the group if the lock is lost, before the ZooKeeper session can expire.
// The group is killed if lockrun is killed. The command ignores the signals that lockrun was started to
// ignore, and lockrun does not forward them: INT and QUIT for a job in the background of a script, HUP
// for nohup, others if lockrun was built with cgo. lockrun ends by the signal that has ended the command,
// so that Ctrl-C ends a loop of a shell, too. As process 1 of a container it waits for the processes
// that lose their parent.
//
// # Partitions
//
// With -partitions 16 all lockruns with the path share 16 partitions, and the number cannot change. Each
// lockrun runs the command once for each partition that it leads. {} in the command's arguments is the
// number of the partition, from 0, as is ACTORLOCK_PARTITION in the environment. The token is greater than
// those of all earlier commands of the partition. The commands have no standard input and no terminal.
//
// A partition goes to another lockrun when that comes, and when this one ends. Its command then gets TERM,
// and KILL after -grace. The other lockrun starts the command when no process of the group is left. If
// lockrun is killed, its commands are killed, and others start them once its session has expired. After a
// loss of the session lockrun stops its commands as it stops that of a lost lock, and takes part again. A
// command that ends by itself begins again after a pause, here or in another lockrun. INT, TERM, HUP and
// QUIT end lockrun: all its commands get the signal, and lockrun ends by it when they have ended. It exits
// with 71 if it could not stop a command whose partition was lost.
//
// # A command that becomes another user
//
// The system does not let lockrun signal a process of another user unless lockrun is root's. Such a
// command cannot be stopped: begin with sudo, as in
//
//	sudo lockrun -zk zk1:2181 -lock /locks/backup -- ./backup.sh
//
// and not with lockrun. lockrun says so at the start if the command's file is set-uid, as sudo's
// is, and at ERROR when it finds a process of the group that it may not signal, when it cannot
// forward a signal, and when the lock is lost. Then it waits for the end of the command, and exits
// with 71. If such a lockrun is killed, the command goes on. lockrun does not see a process that has
// left the command's group.
//
// who answers within some seconds, and names the servers that cannot be reached.
//
// ZooKeeper must be reachable when lockrun starts. In a later outage lockrun waits until -wait is
// over, and says so from time to time. If its standard error is closed or full, lockrun and the
// command go on, and messages are lost.
//
// The command has the standard input, output and error of lockrun. lockrun puts the command into
// the terminal's foreground when the command reads from the terminal. From then on Ctrl-C
// interrupts the command and not lockrun. Ctrl-Z stops neither of them.
//
// With -on-revoke TERM the command gets a signal when another client asks for the lock. With -v
// lockrun prints to standard error the holder of the lock, its own place in the queue, and how long
// it has waited and held. The text of -data is a member of the JSON in the node's data, beside
// host, process and owner.
//
// # A lock server
//
// With -server in place of -zk lockrun needs no ZooKeeper session: it asks the lock servers in a random
// order until one answers, of which examples/lockd is one. -tls-ca, -tls-cert, -tls-key and
// -tls-server-name are those of the lock server then, or -insecure is given. The lock server has the
// session timeout, the credentials and the rights on nodes, so that -session, -max-reply, -auth-file
// and -acl are refused. The command of a lost lock has a second to end between TERM and KILL, or a tenth
// of the lease if that is less. generation needs -zk.
//
// # A secured ensemble
//
// -tls-ca, -tls-cert, -tls-key and -tls-server-name connect by TLS. -auth-file names a file of
// credentials, one scheme:credentials per line, as in digest:backup:secret. lockrun refuses a file
// that all users may read, unless its mount is read-only, as Kubernetes mounts a secret. -acl
// creator grants the rights on new nodes to these credentials alone. The environment has the same:
// ACTORLOCK_ZK, ACTORLOCK_TLS_CA, ACTORLOCK_TLS_CERT, ACTORLOCK_TLS_KEY, ACTORLOCK_TLS_SERVER_NAME,
// ACTORLOCK_AUTH_FILE, ACTORLOCK_ACL, ACTORLOCK_SESSION and ACTORLOCK_MAX_REPLY, ACTORLOCK_SERVER
// and ACTORLOCK_INSECURE (true), and ACTORLOCK_AUTH for the lines of an -auth-file. A flag overrules
// its variable, and -server those that belong to -zk. The command inherits the environment.
//
// # Output
//
// lockrun shows what controls a terminal, or is invisible, by escapes such as \u202e.
// In JSON these are escapes of JSON, so that a program reads the true text; data that are not UTF-8
// are quoted as in Go. A list that is not complete, because ZooKeeper refuses a part of it, ends
// with exit code 69 and names what is missing.
//
// With -json each subcommand except completion prints JSON:
//
//	who          an array with an object for each contender of the lock, in queue order. The object
//	             has place (from 0), holds, kind, node, session, since (when it queued), permits (of
//	             the lock, as the contender's process knows it), owner, identity (of a client of a
//	             lock server, as its node says), host, pid, program, data,
//	             persistent (no end of a session deletes the node) and, in watch, held_since. lockrun
//	             leaves out a field that it does not know.
//	watch        one such array per line, at each change of the queue
//	ls           an array with an object for each lock. The object has path, recipe, permits,
//	             holders (an array of contenders, as above) and waiters (a number).
//	revoke       an array with an object for each contender that lockrun has asked to release. The
//	             object has node and outcome: asked, released or failed.
//	break        the same for each contender from which lockrun takes the lock, with the outcomes
//	             released, broken and failed
//	verify       an object with holds, token and node, and a reason if the grant does not hold
//	generation   an object with generation
//	clients      an array with an object for each client of a lock server. The object has server, number
//	             (as the server's log has it), identity, address, program, connected, lease_left_seconds,
//	             held, waiting, pending_messages and pending_bytes (not confirmed by the client).
//
// # Exit codes
//
// lockrun exits with the command's exit code, ends by the signal that has ended the command or
// lockrun, which shells report as 128 plus its number, or exits with one of these:
//
//	  0  a subcommand has done its work, also if the lock has no contender
//	 64  the command line is not acceptable, or a file that it names
//	 69  ZooKeeper (with -server: a lock server) cannot be reached at the start, does not answer, or
//	     refuses, also within -wait
//	 70  the lock was lost, and no process of the command's group runs any more; of verify: the grant
//	     does not hold
//	 71  the lock was lost, and lockrun could not stop a process of the group: it may have run beside
//	     the next holder
//	 75  the lock was not acquired within -wait, counted from the start of lockrun, which ends
//	     at most one second later; of revoke: not released within -wait; of break: not confirmed
//	126  the command cannot be run
//	127  the command was not found
package main

import (
	"errors"
	"flag"
	"os"
	"time"

	"github.com/actorlock/actorlock/gen/host"
)

const (
	exitUsage         = 64
	exitUnavailable   = 69
	exitLost          = 70
	exitNotStopped    = 71
	exitNotAcquired   = 75
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

// bySignal, plus a signal's number, is in place of an exit code: lockrun ends by that signal. Shells
// report it as exitSignal plus the number, which may also be a command's own exit code.
const bySignal = 1 << 8

const exitCodes = "64 usage, 69 ZooKeeper or lock server unreachable or refuses, 70 lock lost, 71 lock lost and command not stopped,\n" +
	"75 not acquired in time, 126 command cannot be run, 127 command not found, 128 plus a signal's number"

func main() {
	code, err := lockrun(os.Args[1:])
	if err != nil {
		warn("%v", err)
		host.AwaitLog(stderr, time.Second)
	}
	if code > bySignal {
		endBySignal(code - bySignal)
		code += exitSignal - bySignal // no signal has ended the process
	}
	os.Exit(code)
}

// lockrun returns the exit code, and an error if the code is not the command's own.
func lockrun(args []string) (int, error) {
	c, args, err := find(args)
	if err != nil {
		return exitUsage, err
	}
	o, err := c.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return exitUsage, err
	}
	return c.run(o)
}
