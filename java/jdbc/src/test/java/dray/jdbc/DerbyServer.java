package dray.jdbc;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.List;

/** Derby's network server as a process, with the database {@code shop}. */
final class DerbyServer implements AutoCloseable {
    private final Process process;
    private final int port;

    DerbyServer(Path folder) throws IOException, InterruptedException {
        try (var free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        Path log = folder.resolve("derby-server.log");
        process = new ProcessBuilder(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Dderby.system.home=" + folder, "-cp", BridgeProcess.classPath(),
                "org.apache.derby.drda.NetworkServerControl", "start", "-h", "127.0.0.1",
                "-p", "" + port, "-noSecurityManager"))
                .redirectErrorStream(true).redirectOutput(log.toFile()).start();
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (!Files.readString(log).contains("ready to accept connections")) {
            if (!process.isAlive() || System.nanoTime() > deadline) {
                throw new IOException(Files.readString(log));
            }
            Thread.sleep(50);
        }
    }

    String uri() {
        return "jdbc:derby://127.0.0.1:" + port + "/shop";
    }

    void run(String... statements) throws SQLException {
        try (var connection = DriverManager.getConnection(uri() + ";create=true");
                var statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }

    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
