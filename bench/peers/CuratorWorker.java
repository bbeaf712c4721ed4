import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Worker that measures Curator's locks, by the protocol of protocol.go. */
public final class CuratorWorker {
    private static final int SUB_BUCKETS = 6;
    private static final int PERMITS = 3, WRITES_OF = 10;
    private static final VarHandle WORD =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** Returns the bucket of a duration, as histogram.go does. */
    static int bucketOf(long ns) {
        if (ns < 1L << SUB_BUCKETS) {
            return (int) Math.max(ns, 0);
        }
        int shift = 64 - Long.numberOfLeadingZeros(ns) - SUB_BUCKETS - 1;
        return (shift << SUB_BUCKETS) + (int) (ns >> shift);
    }

    /** Checks exclusion, as exclusion.go does. */
    static final class Sections {
        final boolean shared;
        private final ByteBuffer words;

        Sections(String file, int locks) throws Exception {
            shared = !file.isEmpty();
            if (!shared) {
                words = ByteBuffer.allocateDirect(locks * 64);
                return;
            }
            try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
                words = f.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, locks * 64L);
            }
        }

        boolean enter(String recipe, int lock, long me) {
            switch (recipe) {
                case "read":
                    WORD.getAndAdd(words, lock * 64 + 24, 1L);
                    return (long) WORD.getVolatile(words, lock * 64) == 0;
                case "semaphore":
                    return (long) WORD.getAndAdd(words, lock * 64 + 24, 1L) < PERMITS;
                default:
                    boolean alone = (long) WORD.getAndSet(words, lock * 64, me) == 0;
                    return alone && (long) WORD.getVolatile(words, lock * 64 + 24) == 0;
            }
        }

        boolean fromAnother(int lock, long me) {
            long last = (long) WORD.getVolatile(words, lock * 64 + 8);
            return last != 0 && last >> 32 != me >> 32;
        }

        long released(int lock) {
            return (long) WORD.getVolatile(words, lock * 64 + 16);
        }

        void leave(String recipe, int lock, long me) {
            if (recipe.equals("read") || recipe.equals("semaphore")) {
                WORD.getAndAdd(words, lock * 64 + 24, -1L);
                return;
            }
            WORD.setVolatile(words, lock * 64 + 8, me);
            WORD.setVolatile(words, lock * 64 + 16, System.nanoTime());
            WORD.compareAndSet(words, lock * 64, me, 0L);
        }
    }

    /** A lock as one thread uses it. */
    interface Lock {
        String recipe();

        void acquire() throws Exception;

        void release() throws Exception;

        static Lock of(String recipe, InterProcessMutex mutex) {
            return new Lock() {
                @Override
                public String recipe() {
                    return recipe;
                }

                @Override
                public void acquire() throws Exception {
                    mutex.acquire();
                }

                @Override
                public void release() throws Exception {
                    mutex.release();
                }
            };
        }

        static Lock of(InterProcessSemaphoreV2 semaphore) {
            return new Lock() {
                private Lease lease;

                @Override
                public String recipe() {
                    return "semaphore";
                }

                @Override
                public void acquire() throws Exception {
                    lease = semaphore.acquire();
                }

                @Override
                public void release() {
                    semaphore.returnLease(lease);
                }
            };
        }
    }

    /** Lock objects: one per path that the threads share, or one per thread and path. */
    static final class Locks {
        private final CuratorFramework zk;
        private final String recipe;
        private final boolean own;
        private final Map<String, Object> shared = new HashMap<>();

        Locks(CuratorFramework zk, Map<String, String> load) {
            this.zk = zk;
            recipe = load.get("recipe");
            own = load.get("own").equals("1");
        }

        private Object make(String path) {
            return switch (recipe) {
                case "rw" -> new InterProcessReadWriteLock(zk, path);
                case "semaphore" -> new InterProcessSemaphoreV2(zk, path, PERMITS);
                default -> new InterProcessMutex(zk, path);
            };
        }

        /** Returns the lock object, or the write lock and the read lock. */
        Lock[] get(String path) {
            Object lock = own ? make(path) : shared.computeIfAbsent(path, this::make);
            if (lock instanceof InterProcessReadWriteLock rw) {
                return new Lock[] {Lock.of("write", rw.writeLock()), Lock.of("read", rw.readLock())};
            }
            if (lock instanceof InterProcessSemaphoreV2 semaphore) {
                return new Lock[] {Lock.of(semaphore)};
            }
            return new Lock[] {Lock.of("mutex", (InterProcessMutex) lock)};
        }
    }

    /** The measured time, as instants. With awaitTurns it begins when every client has held its lock. */
    static final class Window {
        private static final long TURNS_LIMIT = 5_000_000_000L;
        final long start, length;
        final AtomicLong started = new AtomicLong(); // clients that have held their lock
        volatile long from, until;

        Window(long from, long until, boolean awaitTurns) {
            start = from;
            length = until - from;
            this.from = awaitTurns ? Long.MAX_VALUE : from;
            this.until = awaitTurns ? Long.MAX_VALUE : until;
        }

        void awaitTurns(int clients) throws InterruptedException {
            long deadline = System.nanoTime() + TURNS_LIMIT;
            long now = System.nanoTime();
            while (now < start || started.get() < clients && now < deadline) {
                Thread.sleep(1);
                now = System.nanoTime();
            }
            until = now + length;
            from = now;
        }
    }

    /** One thread, and the locks that it uses in turn. */
    static final class Client extends Thread {
        final Sections sections;
        final long me, hold;
        final List<Integer> locks = new ArrayList<>();
        final List<Lock[]> modes = new ArrayList<>();
        final Locks lockObjects;
        final String path;
        final boolean fresh;
        int turns;
        final Map<Integer, Integer> latencies = new HashMap<>();
        Window window;
        long ops, total, violations;
        Exception failure;

        Client(Map<String, String> load, Sections sections, int number, Locks lockObjects) {
            this.sections = sections;
            turns = number; // clients write at different turns
            hold = Long.parseLong(load.get("hold"));
            this.lockObjects = lockObjects;
            path = load.get("path");
            fresh = load.get("fresh").equals("1");
            me = (Long.parseLong(load.get("process")) << 32) + number + 1;
            int all = Integer.parseInt(load.get("locks")), clients = Integer.parseInt(load.get("clients"));
            for (int lock = number % all; lock < all; lock += clients) {
                locks.add(lock);
                modes.add(fresh ? null : lockObjects.get(path + "/" + lock));
            }
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                for (int i = 0; ; i = (i + 1) % locks.size()) {
                    long start = System.nanoTime();
                    if (start >= window.until) {
                        return;
                    }
                    turn(locks.get(i), modes.get(i), start);
                }
            } catch (Exception e) {
                failure = e;
            }
        }

        private void turn(int lock, Lock[] of, long start) throws Exception {
            turns++;
            if (fresh) {
                of = lockObjects.get(path + "/" + lock + "-" + turns);
            }
            Lock mode = of[turns % WRITES_OF == 0 ? 0 : of.length - 1];
            mode.acquire();
            if (++total == 1) {
                window.started.incrementAndGet();
            }
            if (!sections.enter(mode.recipe(), lock, me)) {
                violations++;
            }
            boolean counts = true;
            long end = 0;
            if (sections.shared) {
                counts = sections.fromAnother(lock, me);
                start = sections.released(lock);
                end = System.nanoTime();
            }
            if (hold > 0) {
                TimeUnit.NANOSECONDS.sleep(hold);
            }
            sections.leave(mode.recipe(), lock, me);
            mode.release();
            if (!sections.shared) {
                end = System.nanoTime();
            }
            if (counts && end >= window.from && end < window.until) {
                ops++;
                latencies.merge(bucketOf(end - start), 1, Integer::sum);
            }
        }
    }

    static List<Client> prepare(CuratorFramework zk, Map<String, String> load) throws Exception {
        Sections sections = new Sections(load.get("sections"), Integer.parseInt(load.get("locks")));
        Locks lockObjects = new Locks(zk, load);
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(load.get("clients")); i++) {
            clients.add(new Client(load, sections, i, lockObjects));
        }
        return clients;
    }

    static String run(List<Client> clients, Window window, boolean awaitTurns) throws Exception {
        for (Client c : clients) {
            c.window = window;
            c.start();
        }
        if (awaitTurns) {
            window.awaitTurns(clients.size());
        }
        long ops = 0, total = 0, violations = 0;
        Map<Integer, Integer> latencies = new TreeMap<>();
        for (Client c : clients) {
            c.join();
            if (c.failure != null) {
                throw c.failure;
            }
            ops += c.ops;
            total += c.total;
            violations += c.violations;
            c.latencies.forEach((bucket, n) -> latencies.merge(bucket, n, Integer::sum));
        }
        String list = latencies.entrySet().stream()
                .map(e -> e.getKey() + ":" + e.getValue()).collect(Collectors.joining(","));
        return "result ops=" + ops + " total=" + total + " violations=" + violations + " latencies=" + list;
    }

    static Map<String, String> arguments(String[] words) {
        Map<String, String> args = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            args.put(pair[0], pair[1]);
        }
        return args;
    }

    public static void main(String[] argv) throws Exception {
        CuratorFramework zk = CuratorFrameworkFactory.newClient(
                argv[0], Integer.parseInt(argv[1]), 15000, new ExponentialBackoffRetry(1000, 3));
        zk.start();
        zk.blockUntilConnected();
        System.out.println("ready");
        List<Client> clients = List.of();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" ");
            Map<String, String> args = arguments(words);
            try {
                switch (words[0]) {
                    case "prepare" -> {
                        clients = prepare(zk, args);
                        System.out.println("ready");
                    }
                    case "run" -> {
                        boolean awaitTurns = args.get("await_turns").equals("1");
                        long from = Long.parseLong(args.get("from")), until = Long.parseLong(args.get("until"));
                        System.out.println(run(clients, new Window(from, until, awaitTurns), awaitTurns));
                    }
                    default -> System.out.println("error unknown verb " + words[0]);
                }
            } catch (Exception e) {
                System.out.println("error " + e.toString().replace('\n', ' '));
            }
        }
        zk.close();
    }
}
