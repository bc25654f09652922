package study.experiment;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import study.Entries;
import study.Implementation;
import study.Input;
import study.Item;
import study.Kind;
import study.Meter;
import study.Result;
import study.Run;
import study.Sink;
import study.UsageException;

/** Experiment 4: one node of a tree that adds sparse vectors. */
public final class Aggregate {
    private static final int NODES = 7;
    private static final long PATIENCE_MS = 60_000;

    private Aggregate() {}

    public static void run(Run run, Result result) throws IOException, InterruptedException {
        int node = (int) run.options().number("node");
        int port = (int) run.options().number("port");
        Implementation implementation = run.implementation();
        Item own = own(run, implementation);
        run.warmUp();
        boolean inner = 2 * node + 2 < NODES;
        try (ServerSocket server = inner ? listen(port + node) : null;
                Socket parent = node > 0 ? connect(port + (node - 1) / 2) : null) {
            List<Socket> children = new ArrayList<>();
            // The children connect before they say that they are ready.
            for (int i = 0; inner && i < 2; i++) {
                children.add(server.accept());
            }
            System.out.println("ready");
            System.out.flush();
            new BufferedReader(new InputStreamReader(System.in)).readLine();
            Meter meter = new Meter();
            Item sum = inner ? sum(implementation, own, children) : own;
            long bytes = parent == null ? 0 : send(implementation, sum, parent);
            meter.stop().report(result);
            result.number("bytes", bytes);
            if (parent == null) {
                result.checksum(sum.checksum());
            }
            for (Socket child : children) {
                child.close();
            }
        }
    }

    /** The vector of this node, in the form that the implementation's programs have. */
    private static Item own(Run run, Implementation implementation) throws IOException {
        if (run.kind() != Kind.VECTOR) {
            throw new UsageException("only vectors are aggregated");
        }
        try (Input input = new Input(run.options().path("input"), run.kind())) {
            Item plain = input.next();
            Sink out = new Sink(1 << 16);
            implementation.encodeMessage(plain, out);
            return implementation.openMessage(Arrays.copyOf(out.bytes, out.at));
        }
    }

    private static ServerSocket listen(int port) throws IOException {
        ServerSocket server = new ServerSocket();
        server.setReuseAddress(true);
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        return server;
    }

    /** Connects to the parent, which may not listen yet. */
    private static Socket connect(int port) throws IOException, InterruptedException {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
                socket.setTcpNoDelay(true);
                return socket;
            } catch (IOException error) {
                if (System.currentTimeMillis() > end) {
                    throw error;
                }
                Thread.sleep(10);
            }
        }
    }

    private static Item sum(Implementation implementation, Item own, List<Socket> children)
            throws IOException {
        List<Entries> all = new ArrayList<>();
        all.add((Entries) own);
        for (Socket child : children) {
            DataInputStream in = new DataInputStream(child.getInputStream());
            byte[] bytes = new byte[Math.toIntExact(Long.reverseBytes(in.readLong()))];
            in.readFully(bytes);
            all.add((Entries) implementation.openMessage(bytes));
        }
        return implementation.sum(all);
    }

    private static long send(Implementation implementation, Item sum, Socket parent)
            throws IOException {
        Sink out = new Sink(1 << 16);
        implementation.encodeMessage(sum, out);
        DataOutputStream to = new DataOutputStream(parent.getOutputStream());
        to.writeLong(Long.reverseBytes(out.at));
        to.write(out.bytes, 0, out.at);
        to.flush();
        return out.at;
    }
}
