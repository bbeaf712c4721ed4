import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;

/** Curator's recipes that are no locks. */
final class Recipes {
    static Driver.DriverObject make(Driver driver, String name, String kind, String[] args) throws Exception {
        switch (kind) {
            case "count":
                return count(driver, name, args[0], Integer.parseInt(args[1]));
            case "persistent":
                return persistent(driver, args[0], args[1]);
            case "tree":
                return tree(driver, name, args[0]);
            case "cache":
                return cache(driver, name, args[0]);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static Driver.DriverObject count(Driver driver, String name, String path, int seed) throws Exception {
        SharedCount count = new SharedCount(driver.client, path, seed);
        count.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader reader, int now) {
                driver.event(name, "COUNT", Integer.toString(now));
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        });
        count.start();
        return (verb, args) -> {
            switch (verb) {
                case "get":
                    return List.of(Integer.toString(count.getCount()));
                case "add":
                    int sum = count.getVersionedValue().getValue() + Integer.parseInt(args[0]);
                    return List.of(Boolean.toString(count.trySetCount(count.getVersionedValue(), sum)));
                default:
                    throw new IllegalArgumentException(verb);
            }
        };
    }

    private static Driver.DriverObject persistent(Driver driver, String path, String data) throws Exception {
        PersistentNode node = new PersistentNode(driver.client, CreateMode.EPHEMERAL, false, path,
                data.getBytes(StandardCharsets.UTF_8));
        node.start();
        if (!node.waitForInitialCreate(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not created within 30 s");
        }
        return (verb, args) -> {
            node.close();
            return List.of();
        };
    }

    private static Driver.DriverObject tree(Driver driver, String name, String path) throws Exception {
        TreeCache cache = new TreeCache(driver.client, path);
        cache.getListenable().addListener((client, event) -> tell(driver, name, event.getType().toString(), event.getData()));
        cache.start();
        return (verb, args) -> {
            TreeMap<String, ChildData> all = new TreeMap<>();
            collect(cache, path, all);
            return list(all.values());
        };
    }

    private static void collect(TreeCache cache, String path, TreeMap<String, ChildData> all) {
        ChildData data = cache.getCurrentData(path);
        if (data == null) {
            return;
        }
        all.put(path, data);
        for (ChildData child : cache.getCurrentChildren(path).values()) {
            collect(cache, child.getPath(), all);
        }
    }

    private static Driver.DriverObject cache(Driver driver, String name, String path) {
        CuratorCache cache = CuratorCache.build(driver.client, path);
        cache.listenable().addListener((type, before, after) -> tell(driver, name, type.toString(), after != null ? after : before));
        cache.start();
        return (verb, args) -> {
            TreeMap<String, ChildData> all = new TreeMap<>();
            cache.stream().forEach(data -> all.put(data.getPath(), data));
            return list(all.values());
        };
    }

    private static List<String> list(Iterable<ChildData> all) {
        List<String> list = new ArrayList<>();
        for (ChildData data : all) {
            list.add(data.getPath() + "=" + text(data));
        }
        return list;
    }

    private static void tell(Driver driver, String name, String kind, ChildData data) {
        driver.event(name, kind, data == null ? "" : data.getPath(), data == null ? "" : text(data));
    }

    private static String text(ChildData data) {
        return data.getData() == null ? "" : new String(data.getData(), StandardCharsets.UTF_8);
    }
}
