import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** An object that is acquired and released. */
abstract class Contender implements Driver.DriverObject {
    /** Returns the new contenders by name, or null if the kind is no contender's. */
    static Map<String, Contender> make(Driver driver, String name, String kind, String[] args) {
        switch (kind) {
            case "mutex":
                return Map.of(name, new OfLock(driver, name, new InterProcessMutex(driver.client, args[0]), false));
            case "readwrite":
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(driver.client, args[0]);
                return Map.of(name + "/read", new OfLock(driver, name + "/read", lock.readLock(), true),
                        name + "/write", new OfLock(driver, name + "/write", lock.writeLock(), false));
            case "semaphore":
                return Map.of(name, new OfSemaphore(driver, args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2])));
            case "semaphoremutex":
                return Map.of(name, new OfLock(driver, name, new InterProcessSemaphoreMutex(driver.client, args[0]), false));
            case "multi":
                return Map.of(name, new OfLock(driver, name, new InterProcessMultiLock(driver.client, Arrays.asList(args)), false));
            case "latch":
                return Map.of(name, new OfLatch(driver, args[0], args[1]));
            case "selector":
                return Map.of(name, new OfSelector(driver, args[0], args[1]));
            case "none":
                return Map.of(name, new OfNothing());
            default:
                return null;
        }
    }

    abstract boolean acquire(long millis) throws Exception;

    abstract void release() throws Exception;

    abstract Collection<String> participants() throws Exception;

    String node() throws Exception {
        return "";
    }

    String leader() throws Exception {
        throw new UnsupportedOperationException("only an election has a leader");
    }

    boolean shared() {
        return false;
    }

    void makeRevocable() {
        throw new UnsupportedOperationException("only a mutex is revocable");
    }

    @Override
    public List<String> call(String verb, String[] args) throws Exception {
        switch (verb) {
            case "acquire":
                return List.of(Boolean.toString(acquire(Long.parseLong(args[0]))));
            case "release":
                release();
                return List.of();
            case "node":
                return List.of(node());
            case "participants":
                return List.copyOf(participants());
            case "leader":
                return List.of(leader());
            case "revocable":
                makeRevocable();
                return List.of();
            case "contend":
                contend(args[0], args[1], Integer.parseInt(args[2]), Long.parseLong(args[3]), Long.parseLong(args[4]));
                return List.of();
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /** Acquires and releases in each round, and records when it is inside. */
    private void contend(String file, String who, int rounds, long holdMicros, long millis) throws Exception {
        try (FileChannel log = FileChannel.open(Path.of(file), StandardOpenOption.WRITE, StandardOpenOption.APPEND)) {
            for (int i = 0; i < rounds; i++) {
                if (!acquire(millis)) {
                    throw new IllegalStateException("not acquired within " + millis + " ms, in round " + i);
                }
                String node = node();
                append(log, "enter\t" + who + "\t" + (shared() ? "shared" : "exclusive") + "\t" + node + "\n");
                LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(holdMicros));
                append(log, "leave\t" + who + "\n");
                release();
            }
        }
    }

    private static void append(FileChannel log, String line) throws Exception {
        log.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
    }

    private static final class OfLock extends Contender {
        private final Driver driver;
        private final String name;
        private final InterProcessLock lock;
        private final boolean shared;

        OfLock(Driver driver, String name, InterProcessLock lock, boolean shared) {
            this.driver = driver;
            this.name = name;
            this.lock = lock;
            this.shared = shared;
        }

        @Override
        boolean acquire(long millis) throws Exception {
            return lock.acquire(millis, TimeUnit.MILLISECONDS);
        }

        @Override
        void release() throws Exception {
            lock.release();
        }

        @Override
        Collection<String> participants() throws Exception {
            return lock instanceof InterProcessMutex ? ((InterProcessMutex) lock).getParticipantNodes() : List.of();
        }

        @Override
        String node() throws Exception {
            if (!(lock instanceof InterProcessMutex)) {
                return "";
            }
            Method path = InterProcessMutex.class.getDeclaredMethod("getLockPath"); // for subclasses, officially
            path.setAccessible(true);
            Object node = path.invoke(lock);
            return node == null ? "" : (String) node;
        }

        @Override
        boolean shared() {
            return shared;
        }

        @Override
        void makeRevocable() {
            ((InterProcessMutex) lock).makeRevocable(revoked -> driver.event(name, "REVOKE"));
        }
    }

    private static final class OfSemaphore extends Contender {
        private final InterProcessSemaphoreV2 semaphore;
        private final Deque<Collection<Lease>> held = new ArrayDeque<>();
        private final String path;
        private final int leases;

        OfSemaphore(Driver driver, String path, int permits, int leases) {
            this.path = path;
            this.leases = leases;
            semaphore = new InterProcessSemaphoreV2(driver.client, path, permits);
        }

        @Override
        boolean acquire(long millis) throws Exception {
            Collection<Lease> acquired = semaphore.acquire(leases, millis, TimeUnit.MILLISECONDS);
            if (acquired == null) {
                return false;
            }
            held.push(acquired);
            return true;
        }

        @Override
        void release() {
            semaphore.returnAll(held.pop());
        }

        @Override
        Collection<String> participants() throws Exception {
            return semaphore.getParticipantNodes();
        }

        @Override
        String node() {
            return held.isEmpty() ? "" : path + "/leases/" + held.peek().iterator().next().getNodeName();
        }

        @Override
        boolean shared() {
            return true;
        }
    }

    /** A candidate acquires leadership by joining the election, and releases it by leaving the election. */
    private static final class OfLatch extends Contender {
        private final Driver driver;
        private final String path;
        private final String id;
        private LeaderLatch latch;

        OfLatch(Driver driver, String path, String id) {
            this.driver = driver;
            this.path = path;
            this.id = id;
        }

        @Override
        boolean acquire(long millis) throws Exception {
            if (latch == null) {
                latch = new LeaderLatch(driver.client, path, id);
                latch.start();
            }
            if (latch.await(millis, TimeUnit.MILLISECONDS)) {
                return true;
            }
            release();
            return false;
        }

        @Override
        void release() throws Exception {
            latch.close();
            latch = null;
        }

        @Override
        Collection<String> participants() throws Exception {
            return ids(new LeaderLatch(driver.client, path).getParticipants());
        }

        @Override
        String leader() throws Exception {
            return new LeaderLatch(driver.client, path).getLeader().getId();
        }
    }

    private static List<String> ids(Collection<Participant> participants) {
        List<String> ids = new ArrayList<>();
        for (Participant participant : participants) {
            ids.add(participant.getId());
        }
        return ids;
    }

    /** Leads until it is released, which closes the selector. */
    private static final class OfSelector extends Contender {
        private final Driver driver;
        private final String path;
        private final String id;
        private LeaderSelector selector;

        OfSelector(Driver driver, String path, String id) {
            this.driver = driver;
            this.path = path;
            this.id = id;
        }

        private LeaderSelector make(Semaphore leads) {
            return new LeaderSelector(driver.client, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws InterruptedException {
                    leads.release();
                    new Semaphore(0).acquire(); // until close, or the loss of the connection, interrupts it
                }
            });
        }

        @Override
        boolean acquire(long millis) throws Exception {
            Semaphore leads = new Semaphore(0);
            selector = make(leads);
            selector.setId(id);
            selector.start();
            if (leads.tryAcquire(millis, TimeUnit.MILLISECONDS)) {
                return true;
            }
            release();
            return false;
        }

        @Override
        void release() {
            selector.close();
        }

        @Override
        Collection<String> participants() throws Exception {
            return ids(make(null).getParticipants());
        }

        @Override
        String leader() throws Exception {
            return make(null).getLeader().getId();
        }
    }

    /** A lock that excludes no client. */
    private static final class OfNothing extends Contender {
        @Override
        boolean acquire(long millis) {
            return true;
        }

        @Override
        void release() {}

        @Override
        Collection<String> participants() {
            return List.of();
        }
    }
}
