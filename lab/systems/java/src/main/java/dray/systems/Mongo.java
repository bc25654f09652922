package dray.systems;

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A server that speaks MongoDB's protocol, with its data in memory: {@code Mongo ADDRESS PORT}. */
public final class Mongo {
    private Mongo() {}

    /** MongoDB 5.0, with its wire version: the driver that Dray uses refuses the server's own 8. */
    private static final class Version5 implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 13;
        }
    }

    public static void main(String[] words) {
        var backend = new MemoryBackend().version(new Version5());
        new MongoServer(backend).bind(words[0], Integer.parseInt(words[1]));
        System.out.println("listening");
    }
}
