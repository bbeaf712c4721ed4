"""Lets a Go test use kazoo.

A line of standard input is a request: its number, a thread, an object, a verb and arguments, separated by tabs. The
thread handles the request. A line of standard output is a reply: the number, "ok" or "error", and values; or, with
the number 0, an event. The process ends at the end of its input.
"""
import os
import queue
import re
import sys
import threading
import time
import traceback

import kazoo
from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

out_lock = threading.Lock()


def send(number, what, values):
    fields = [number, what] + [re.sub(r"[\t\n\r]", " ", str(v)) for v in values]
    with out_lock:
        sys.stdout.write("\t".join(fields) + "\n")
        sys.stdout.flush()


class Contender:
    """An object that is acquired and released."""

    shared = False

    def __init__(self, lock=None, shared=False):
        self.lock = lock
        self.shared = shared

    def acquire(self, millis):
        if self.lock is None:
            return True
        if int(millis) == 0:
            return self.lock.acquire(blocking=False)
        try:
            return self.lock.acquire(timeout=int(millis) / 1000)
        except LockTimeout:
            return False

    def release(self):
        if self.lock is not None:
            self.lock.release()

    def node(self):
        if self.lock is None:
            return ""
        name = getattr(self.lock, "node", None)  # a semaphore's lease has its whole path
        return self.lock.path + "/" + name if name else getattr(self.lock, "create_path", "")

    def participants(self):
        if hasattr(self.lock, "lease_holders"):
            return self.lock.lease_holders()
        return self.lock.contenders()

    def call(self, verb, args):
        if verb == "acquire":
            return ["true" if self.acquire(*args) else "false"]
        if verb == "release":
            self.release()
            return []
        if verb == "node":
            return [self.node()]
        if verb == "participants":
            return self.participants()
        if verb == "contend":
            self.contend(*args)
            return []
        raise ValueError(verb)

    def contend(self, file, who, rounds, hold_micros, millis):
        """Acquires and releases in each round, and records when it is inside."""
        log = os.open(file, os.O_WRONLY | os.O_APPEND)
        mode = "shared" if self.shared else "exclusive"
        try:
            for i in range(int(rounds)):
                if not self.acquire(millis):
                    raise RuntimeError("not acquired within %s ms, in round %d" % (millis, i))
                os.write(log, ("enter\t%s\t%s\t%s\n" % (who, mode, self.node())).encode())
                time.sleep(int(hold_micros) / 1e6)
                os.write(log, ("leave\t%s\n" % who).encode())
                self.release()
        finally:
            os.close(log)


class Election(Contender):
    """A candidate acquires leadership by joining the election, and releases it by leaving the election."""

    def __init__(self, client, path, identifier):
        super().__init__(client.Election(path, identifier))

    def acquire(self, millis):
        leads, self.leave = threading.Event(), threading.Event()

        def lead():
            leads.set()
            self.leave.wait()

        self.thread = threading.Thread(target=self.lock.run, args=(lead,), daemon=True)
        self.thread.start()
        if leads.wait(int(millis) / 1000):
            return True
        self.lock.cancel()
        self.release()
        return False

    def release(self):
        self.leave.set()
        self.thread.join()

    def node(self):
        return ""


class Driver:
    def __init__(self, hosts, session_millis):
        self.client = KazooClient(hosts=hosts, timeout=int(session_millis) / 1000)
        self.client.add_listener(lambda state: send("0", "client", [state]))
        self.threads = {}
        self.things = {"client": self}

    def make(self, name, kind, args):
        client = self.client
        if kind == "mutex":
            return Contender(client.Lock(args[0], name, extra_lock_patterns=args[1:]))
        if kind == "read":
            return Contender(client.ReadLock(args[0], name), shared=True)
        if kind == "write":
            return Contender(client.WriteLock(args[0], name))
        if kind == "semaphore":
            return Contender(client.Semaphore(args[0], name, max_leases=int(args[1])), shared=True)
        if kind == "curator mutex":
            return Contender(CuratorLock(client, args[0], name))
        if kind == "curator read":
            return Contender(CuratorReadLock(client, args[0], name), shared=True)
        if kind == "curator write":
            return Contender(CuratorWriteLock(client, args[0], name))
        if kind == "curator semaphore":
            return Contender(CuratorSemaphore(client, args[0], name, max_leases=int(args[1])), shared=True)
        if kind == "election":
            return Election(client, args[0], args[1])
        if kind == "none":
            return Contender()
        if kind == "data":
            client.DataWatch(args[0])(lambda data, stat: send("0", name, ["DATA", args[0], (data or b"").decode()]))
            return self
        if kind == "children":
            client.ChildrenWatch(args[0])(lambda names: send("0", name, ["CHILDREN", args[0], " ".join(sorted(names))]))
            return self
        raise ValueError(kind)

    def call(self, verb, args):
        if verb == "session":
            self.client.start(timeout=30)
            return [self.client.client_id[0]]
        if verb == "version":
            return [kazoo.__version__]
        if verb == "transaction":
            return self.transaction(args)
        raise ValueError(verb)

    def transaction(self, ops):
        """Runs operations, each a verb, a path and data. The results are paths, stats and errors."""
        transaction = self.client.transaction()
        for verb, path, data in zip(ops[::3], ops[1::3], ops[2::3]):
            if verb == "create":
                transaction.create(path, data.encode())
            elif verb == "set":
                transaction.set_data(path, data.encode())
            elif verb == "delete":
                transaction.delete(path)
            elif verb == "check":
                transaction.check(path, int(data))
            else:
                raise ValueError(verb)
        return [type(r).__name__ if isinstance(r, Exception) else "ok" for r in transaction.commit()]

    def serve(self, requests):
        while True:
            number, _, name, verb, *args = requests.get()
            try:
                if name in self.things:
                    send(number, "ok", self.things[name].call(verb, args))
                else:
                    self.things[name] = self.make(name, verb, args)
                    send(number, "ok", [])
            except Exception as e:
                traceback.print_exc()
                send(number, "error", [repr(e)])

    def run(self):
        for line in sys.stdin:
            fields = line.rstrip("\n").split("\t")
            if fields[1] not in self.threads:
                requests = self.threads[fields[1]] = queue.Queue()
                threading.Thread(target=self.serve, args=(requests,), daemon=True).start()
            self.threads[fields[1]].put(fields)
        self.client.stop()
        os._exit(0)  # threads may be waiting for a lock


Driver(*sys.argv[1:]).run()
