package dray.systems;

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** A server that speaks MongoDB's protocol, with its data in memory: {@code Mongo ADDRESS PORT}. */
public final class Mongo {
    private Mongo() {}

    public static void main(String[] words) {
        new MongoServer(new MemoryBackend()).bind(words[0], Integer.parseInt(words[1]));
        System.out.println("listening");
    }
}
