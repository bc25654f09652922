import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A server that speaks MongoDB's protocol on a free port, with its data in memory. */
public final class Mongo {
    private Mongo() {}

    /** MongoDB 5.0, with its wire version: the server's own 8 is that of 4.2, which is too old. */
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
        System.out.println(new MongoServer(backend).bind().getPort());
    }
}
