package study.experiment;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import study.Implementation;
import study.Index;
import study.Item;
import study.Meter;
import study.PageWriter;
import study.Pages;
import study.Result;
import study.Run;
import study.StoredFile;
import study.UsageException;

/** Experiment 2: the server, for one connection. */
public final class Serve {
    private final Run run;
    private final Implementation implementation;
    private final Index index;
    private final StoredFile file;
    /** The objects, if they are served from memory, and the page of each. */
    private final List<Item> items = new ArrayList<>();
    private final List<byte[]> pages = new ArrayList<>();
    private final byte[] header = new byte[4];
    private long bytes;

    private Serve(Run run) throws IOException {
        this.run = run;
        implementation = run.implementation();
        Path folder = run.options().path("folder");
        index = Index.of(folder, run.kind());
        file = StoredFile.read(StoredFile.pages(folder, run.kind()));
        if (run.options().text("source").equals("ram")) {
            load();
        } else if (!run.options().text("source").equals("disk")) {
            throw new UsageException("--source is ram or disk");
        }
    }

    public static void run(Run run, Result result) throws IOException {
        Serve serve = new Serve(run);
        run.warmUp();
        InetAddress address = InetAddress.getByName(run.options().text("address"));
        try (ServerSocket server = new ServerSocket()) {
            server.setReuseAddress(true);
            server.bind(new InetSocketAddress(address, (int) run.options().number("port")));
            System.out.println("ready");
            System.out.flush();
            try (Socket client = server.accept()) {
                client.setTcpNoDelay(true);
                long before = serve.file.nanoseconds();
                Meter meter = new Meter();
                serve.answerAll(client);
                meter.stop().report(result);
                result.seconds("io_s", (serve.file.nanoseconds() - before) * 1e-9)
                        .number("bytes", serve.bytes);
            }
        }
        serve.file.close();
    }

    /** Reads all objects into memory. */
    private void load() throws IOException {
        for (int i = 0; i < index.size(); ) {
            byte[] page = new byte[index.pageBytes(i)];
            file.read(page, page.length, index.offset(i));
            if (run.validates()) {
                implementation.validate(page);
            }
            for (int end = index.endOfPage(i, index.size()); i < end; i++) {
                items.add(implementation.open(page, index.position(i)));
                pages.add(items.get(i).viewsBytes() ? page : null);
            }
        }
    }

    private void answerAll(Socket client) throws IOException {
        DataInputStream in = new DataInputStream(client.getInputStream());
        OutputStream out = client.getOutputStream();
        while (true) {
            long first;
            try {
                first = Long.reverseBytes(in.readLong());
            } catch (EOFException end) {
                return;
            }
            long count = Long.reverseBytes(in.readLong());
            index.require(first, count);
            if (items.isEmpty()) {
                sendPages((int) first, (int) (first + count), out);
            } else {
                sendObjects((int) first, (int) (first + count), out);
            }
            Pages.view(header).putInt(0, 0);
            out.write(header);
        }
    }

    /** Encodes objects. A page that is read in place is sent as it is, if all of it is wanted. */
    private void sendObjects(int from, int to, OutputStream out) throws IOException {
        PageWriter writer = implementation.writer(
                (page, length, positions, objectBytes) -> send(page, length, out));
        for (int i = from; i < to; ) {
            int end = index.endOfPage(i, index.size());
            boolean isFirst = i == 0 || index.offset(i - 1) != index.offset(i);
            if (isFirst && end <= to && items.get(i).viewsBytes()) {
                writer.finish();
                send(pages.get(i), pages.get(i).length, out);
                i = end;
            } else {
                writer.add(items.get(i++));
            }
        }
        writer.finish();
    }

    private void sendPages(int from, int to, OutputStream out) throws IOException {
        byte[] page = new byte[0];
        for (int i = from; i < to; i = index.endOfPage(i, to)) {
            if (page.length != index.pageBytes(i)) {
                page = new byte[index.pageBytes(i)];
            }
            file.read(page, page.length, index.offset(i));
            send(page, page.length, out);
        }
    }

    private void send(byte[] page, int length, OutputStream out) throws IOException {
        Pages.view(header).putInt(0, length);
        out.write(header);
        out.write(page, 0, length);
        bytes += length;
    }
}
