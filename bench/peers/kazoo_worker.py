"""Worker that measures kazoo's locks, by the protocol of protocol.go on standard input and output."""

import mmap
import sys
import threading
import time

from kazoo.client import KazooClient

SUB_BUCKETS = 6
TURNS_LIMIT = 5_000_000_000
PERMITS = 3
WRITES_OF = 10


def bucket_of(ns):
    """Returns the bucket of a duration, as histogram.go does."""
    if ns < 1 << SUB_BUCKETS:
        return max(ns, 0)
    shift = ns.bit_length() - SUB_BUCKETS - 1
    return (shift << SUB_BUCKETS) + (ns >> shift)


class Sections:
    """Checks exclusion, as exclusion.go does. Python has no atomic words: a client that finds its number overwritten
    when it leaves was not alone."""

    def __init__(self, file, locks):
        self.shared = file != ""
        if self.shared:
            with open(file, "r+b") as f:
                memory = mmap.mmap(f.fileno(), locks * 64)
        else:
            memory = bytearray(locks * 64)
        self.words = memoryview(memory).cast("q")
        self.counting = threading.Lock()

    def count(self, lock, change):
        with self.counting:
            self.words[lock * 8 + 3] += change
            return self.words[lock * 8 + 3]

    def enter(self, recipe, lock, me):
        if recipe == "read":
            self.count(lock, 1)
            return self.words[lock * 8] == 0
        if recipe == "semaphore":
            return self.count(lock, 1) <= PERMITS
        alone = self.words[lock * 8] == 0 and self.words[lock * 8 + 3] == 0
        self.words[lock * 8] = me
        return alone

    def handed_over(self, lock, me):
        last = self.words[lock * 8 + 1]
        return last != 0 and last >> 32 != me >> 32, self.words[lock * 8 + 2]

    def leave(self, recipe, lock, me):
        if recipe in ("read", "semaphore"):
            self.count(lock, -1)
            return True
        alone = self.words[lock * 8] == me
        self.words[lock * 8 + 1] = me
        self.words[lock * 8 + 2] = time.monotonic_ns()
        if alone:
            self.words[lock * 8] = 0
        return alone


class Window:
    """The measured time, as instants. With await_turns it begins when every client has held its lock."""

    def __init__(self, begin, until, await_turns):
        self.start, self.length = begin, until - begin
        self.begin, self.until = (sys.maxsize, sys.maxsize) if await_turns else (begin, until)

    def await_turns(self, clients):
        deadline = time.monotonic_ns() + TURNS_LIMIT
        while True:
            now = time.monotonic_ns()
            if now >= self.start and (now >= deadline or all(c.total for c in clients)):
                break
            time.sleep(0.005)
        self.until = now + self.length
        self.begin = now


def modes(zk, recipe, path):
    """Returns the lock object, or the write lock and the read lock, each with its mode."""
    if recipe == "rw":
        return [("write", zk.WriteLock(path)), ("read", zk.ReadLock(path))]
    if recipe == "semaphore":
        return [("semaphore", zk.Semaphore(path, max_leases=PERMITS))]
    return [("mutex", zk.Lock(path))]


class Client:
    """One thread, and the locks that it uses in turn."""

    def __init__(self, zk, load, sections, number):
        self.me = (int(load["process"]) << 32) + number + 1
        self.sections, self.hold = sections, int(load["hold"]) / 1e9
        clients, locks = int(load["clients"]), int(load["locks"])
        recipe, self.turns = load["recipe"], number  # clients write at different turns
        self.uses = [(i, modes(zk, recipe, "%s/%d" % (load["path"], i))) for i in range(number % locks, locks, clients)]
        self.ops = self.total = self.violations = 0
        self.latencies = {}
        self.error = None

    def run(self, window):
        try:
            while True:
                for lock, of in self.uses:
                    start = time.monotonic_ns()
                    if start >= window.until:
                        return
                    self.turns += 1
                    recipe, lock_object = of[0 if self.turns % WRITES_OF == 0 else -1]
                    self.turn(lock, recipe, lock_object, start, window)
        except Exception as e:
            self.error = e

    def turn(self, lock, recipe, lock_object, start, window):
        lock_object.acquire()
        sections, me, counts = self.sections, self.me, True
        self.total += 1
        self.violations += not sections.enter(recipe, lock, me)
        if sections.shared:
            counts, start = sections.handed_over(lock, me)
            end = time.monotonic_ns()
        if self.hold:
            time.sleep(self.hold)
        self.violations += not sections.leave(recipe, lock, me)
        lock_object.release()
        if not sections.shared:
            end = time.monotonic_ns()
        if counts and window.begin <= end < window.until:
            self.ops += 1
            bucket = bucket_of(end - start)
            self.latencies[bucket] = self.latencies.get(bucket, 0) + 1


def prepare(zk, load):
    sections = Sections(load["sections"], int(load["locks"]))
    return [Client(zk, load, sections, i) for i in range(int(load["clients"]))]


def run(clients, window, await_turns):
    if await_turns:
        threading.Thread(target=window.await_turns, args=(clients,), daemon=True).start()
    threads = [threading.Thread(target=c.run, args=(window,), daemon=True) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    latencies = {}
    for c in clients:
        if c.error:
            raise c.error
        for bucket, n in c.latencies.items():
            latencies[bucket] = latencies.get(bucket, 0) + n
    return "result ops=%d total=%d violations=%d latencies=%s" % (
        sum(c.ops for c in clients),
        sum(c.total for c in clients),
        sum(c.violations for c in clients),
        ",".join("%d:%d" % item for item in sorted(latencies.items())),
    )


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[2]) / 1000)
    zk.start()
    print("ready", flush=True)
    clients = []
    for line in sys.stdin:
        verb, *words = line.split()
        args = dict(word.split("=", 1) for word in words)
        try:
            if verb == "prepare":
                clients = prepare(zk, args)
                print("ready", flush=True)
            elif verb == "run":
                await_turns = args["await_turns"] == "1"
                print(run(clients, Window(int(args["from"]), int(args["until"]), await_turns), await_turns), flush=True)
            else:
                print("error unknown verb", verb, flush=True)
        except Exception as e:
            print("error", repr(e).replace("\n", " "), flush=True)
    zk.stop()


main()
