package dray.jdbc;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.sql.Blob;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;

/** Appends large objects, and reads no more of one than a cell may have. */
final class LargeObjects {
    private static final int PART = 32 << 10;

    private LargeObjects() {}

    static Appender characters(FieldVector vector) {
        var texts = (VarCharVector) vector;
        return (rows, column, at) -> {
            try (Reader reader = rows.getCharacterStream(column)) {
                return Texts.append(texts, at, reader == null ? null : read(vector, reader));
            } catch (IOException broken) {
                throw unread(vector, broken);
            }
        };
    }

    private static String read(FieldVector vector, Reader reader) throws IOException, Failure {
        var text = new StringBuilder();
        char[] part = new char[PART];
        int count;
        while ((count = reader.read(part)) >= 0) {
            text.append(part, 0, count);
            Texts.checkSize(vector, text.length());
        }
        return text.toString();
    }

    static Appender bytes(FieldVector vector) {
        var binaries = (VarBinaryVector) vector;
        return (rows, column, at) -> {
            try (InputStream stream = stream(rows, column)) {
                return Texts.append(binaries, at, stream == null ? null : read(vector, stream));
            } catch (IOException broken) {
                throw unread(vector, broken);
            }
        };
    }

    /** Some drivers have no getBinaryStream. */
    private static InputStream stream(ResultSet rows, int column) throws SQLException {
        try {
            return rows.getBinaryStream(column);
        } catch (SQLFeatureNotSupportedException notSupported) {
            Blob blob = rows.getBlob(column);
            return blob == null ? null : blob.getBinaryStream();
        }
    }

    private static byte[] read(FieldVector vector, InputStream stream)
            throws IOException, Failure {
        var bytes = new ByteArrayOutputStream();
        byte[] part = new byte[PART];
        int count;
        while ((count = stream.read(part)) >= 0) {
            bytes.write(part, 0, count);
            Texts.checkSize(vector, bytes.size());
        }
        return bytes.toByteArray();
    }

    /** The driver's error, which is none of the server's pipes. */
    private static SQLException unread(FieldVector vector, IOException broken) {
        return broken.getCause() instanceof SQLException cause ? cause : new SQLException(
                "column " + vector.getName() + ": " + broken.getMessage(), broken);
    }
}
