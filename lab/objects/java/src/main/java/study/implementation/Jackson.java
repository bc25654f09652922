package study.implementation;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.module.blackbird.BlackbirdModule;
import de.undercouch.bson4jackson.BsonFactory;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import study.ByteStrings;
import study.Item;
import study.Kind;
import study.Sink;
import study.model.Plain;

/**
 * Self-describing documents by Jackson, whose module Blackbird compiles the access to fields: JSON
 * that is compressed, or BSON.
 */
public final class Jackson extends ByteStrings {
    private final boolean compressed;
    private final ObjectReader reader;
    private final ObjectWriter writer;

    private Jackson(ObjectMapper mapper, Kind kind, boolean compressed) {
        this.compressed = compressed;
        mapper.registerModule(new BlackbirdModule());
        reader = mapper.readerFor(kind.type);
        writer = mapper.writerFor(kind.type);
    }

    public static Jackson jsonGzip(Kind kind) {
        return new Jackson(new ObjectMapper(), kind, true);
    }

    public static Jackson bson(Kind kind) {
        return new Jackson(new ObjectMapper(new BsonFactory()), kind, false);
    }

    @Override
    protected void encode(Plain plain, Sink out) throws IOException {
        // The writer closes the stream, which ends the compressed bytes.
        writer.writeValue(compressed ? new GZIPOutputStream(out) : out, plain);
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) throws IOException {
        if (compressed) {
            var stream = new ByteArrayInputStream(bytes, offset, length);
            return reader.readValue(new GZIPInputStream(stream));
        }
        return reader.readValue(bytes, offset, length);
    }
}
