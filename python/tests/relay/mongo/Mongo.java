import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** A server that speaks MongoDB's protocol on a free port, with its data in memory. */
public final class Mongo {
    private Mongo() {}

    public static void main(String[] words) {
        System.out.println(new MongoServer(new MemoryBackend()).bind().getPort());
    }
}
