import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Lets a Go test use Curator. A line of standard input is a request: its number, a thread, an object, a verb and
 * arguments, separated by tabs. The thread handles the request. A line of standard output is a reply: the number, "ok"
 * or "error", and values; or, with the number 0, an event. The process ends at the end of its input.
 */
final class Driver {
    /** The object of a request. */
    interface DriverObject {
        List<String> call(String verb, String[] args) throws Exception;
    }

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Map<String, DriverObject> objects = new ConcurrentHashMap<>();
    final CuratorFramework client;

    private Driver(String servers, int sessionMillis) {
        client = CuratorFrameworkFactory.newClient(servers, sessionMillis, sessionMillis, new ExponentialBackoffRetry(50, 5));
        client.getConnectionStateListenable().addListener((c, state) -> event("client", state.toString()));
        objects.put("client", this::call);
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0], Integer.parseInt(args[1]));
        driver.client.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] fields = line.split("\t", -1);
            driver.threads.computeIfAbsent(fields[1], name -> Executors.newSingleThreadExecutor())
                    .execute(() -> driver.serve(fields));
        }
        driver.client.close();
        Runtime.getRuntime().halt(0); // threads may be waiting for a lock
    }

    private void serve(String[] fields) {
        try {
            String[] args = Arrays.copyOfRange(fields, 4, fields.length);
            DriverObject object = objects.get(fields[2]);
            if (object == null) {
                add(fields[2], fields[3], args);
                send(fields[0], "ok", List.of());
            } else {
                send(fields[0], "ok", object.call(fields[3], args));
            }
        } catch (Throwable e) {
            e.printStackTrace();
            send(fields[0], "error", List.of(e.toString()));
        }
    }

    /** Makes the object of a request that does not exist. The verb is its kind. */
    private void add(String name, String kind, String[] args) throws Exception {
        Map<String, ? extends DriverObject> made = Contender.make(this, name, kind, args);
        if (made == null) {
            made = Map.of(name, Recipes.make(this, name, kind, args));
        }
        objects.putAll(made);
        objects.putIfAbsent(name, (verb, unused) -> List.of()); // if one request makes several objects
    }

    void event(String name, String... values) {
        send("0", name, Arrays.asList(values));
    }

    private void send(String number, String what, List<String> values) {
        StringBuilder line = new StringBuilder(number).append('\t').append(what);
        for (String value : values) {
            line.append('\t').append(value == null ? "" : value.replaceAll("[\t\n\r]", " "));
        }
        synchronized (out) {
            out.print(line.append('\n'));
            out.flush();
        }
    }

    private List<String> call(String verb, String[] args) throws Exception {
        switch (verb) {
            case "session":
                if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("not connected within 30 s");
                }
                return List.of(Long.toString(client.getZookeeperClient().getZooKeeper().getSessionId()));
            case "revoke":
                Revoker.attemptRevoke(client, args[0]);
                return List.of();
            default:
                throw new IllegalArgumentException(verb);
        }
    }
}
