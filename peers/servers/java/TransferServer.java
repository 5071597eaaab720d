import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.ServerSocketChannel;
import java.util.List;

/**
 * The service of paper 004 (section 4.1, with the greeting of 5.5.3) in Java: JSimple, ServerJMT and
 * ServerJMTpool of tables 5.1 and 5.2, and an event-driven server, for which the paper's Java had no means.
 */
public final class TransferServer {
    private static final List<String> ARCHITECTURES =
            List.of("iterative", "thread-per-connection", "accept-pool", "event-driven");
    private static final String USAGE =
            "usage: java ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]"
                    + " [--no-greeting] [--until-stdin-closes]";
    private static final int BACKLOG = 1024;
    private static final int MAX_WORKERS = 1024;
    private static final long STACK_OCTETS = 64 << 10;
    private static final long RETRY_MILLISECONDS = 10;

    private String host = "127.0.0.1";
    private int port;
    private int workers = 10;
    private boolean hasGreeting = true;
    private boolean untilStdinCloses;

    private TransferServer() {}

    public static void main(String[] words) {
        if (words.length == 1 && words[0].equals("--list")) {
            ARCHITECTURES.forEach(System.out::println);
            return;
        }
        if (words.length == 0 || words[0].startsWith("-")) exit(2, USAGE);
        if (!ARCHITECTURES.contains(words[0])) {
            exit(2, "java: unknown architecture `" + words[0] + "`; there are: " + String.join(" ", ARCHITECTURES));
        }
        TransferServer server = new TransferServer();
        server.parse(words);
        // SIGTERM runs this hook, and would then end the process with another status than 0.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
        if (server.untilStdinCloses) startThread(TransferServer::endWithStdin);
        try {
            server.run(words[0]);
        } catch (IOException e) {
            System.err.println("java: cannot listen on " + server.host + ":" + server.port + ": " + e.getMessage());
            Runtime.getRuntime().halt(1);
        }
    }

    private void parse(String[] words) {
        for (int i = 1; i < words.length; i++) {
            String value = i + 1 < words.length ? words[i + 1] : "";
            switch (words[i]) {
                case "--no-greeting" -> hasGreeting = false;
                case "--until-stdin-closes" -> untilStdinCloses = true;
                case "--port" -> port = number(words[i++], value, 0, 65535);
                case "--workers" -> workers = number(words[i++], value, 1, MAX_WORKERS);
                case "--host" -> {
                    if (value.isEmpty()) exit(2, USAGE);
                    host = value;
                    i++;
                }
                default -> exit(2, USAGE);
            }
        }
    }

    private static int number(String option, String text, int min, int max) {
        int value = text.matches("[0-9]{1,9}") ? Integer.parseInt(text) : -1;
        if (value < min || value > max) exit(2, "java: " + option + " takes a number from " + min + " to " + max);
        return value;
    }

    private static void exit(int status, String line) {
        System.err.println(line);
        System.exit(status);
    }

    private void run(String architecture) throws IOException {
        InetSocketAddress address = new InetSocketAddress(host, port);
        if (architecture.equals("event-driven")) {
            try (ServerSocketChannel listener = ServerSocketChannel.open()) {
                listener.bind(address, BACKLOG);
                EventDriven server = new EventDriven(listener, hasGreeting);
                announce(listener.socket());
                server.run();
            }
            return;
        }
        try (ServerSocket listener = new ServerSocket()) {
            listener.bind(address, BACKLOG);
            announce(listener);
            switch (architecture) {
                case "iterative" -> serveAll(listener);
                case "thread-per-connection" -> {
                    for (;;) {
                        Socket connection = accept(listener);
                        startThread(() -> Service.serve(connection, hasGreeting));
                    }
                }
                default -> {
                    for (int i = 1; i < workers; i++) startThread(() -> serveAll(listener));
                    serveAll(listener);
                }
            }
        }
    }

    private void announce(ServerSocket listener) {
        System.out.println("listening " + host + ":" + listener.getLocalPort());
        System.out.flush();
    }

    private void serveAll(ServerSocket listener) {
        for (;;) Service.serve(accept(listener), hasGreeting);
    }

    /** Accepts a connection; without free descriptors it waits and tries again. */
    private static Socket accept(ServerSocket listener) {
        for (;;) {
            try {
                return listener.accept();
            } catch (IOException exhausted) {
                pauseBriefly();
            }
        }
    }

    static void pauseBriefly() {
        try {
            Thread.sleep(RETRY_MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException("no thread is interrupted here", e);
        }
    }

    private static void startThread(Runnable work) {
        for (;;) {
            try {
                new Thread(null, work, "worker", STACK_OCTETS).start();
                return;
            } catch (OutOfMemoryError exhausted) { // threads
                pauseBriefly();
            }
        }
    }

    private static void endWithStdin() {
        try (InputStream in = System.in) {
            byte[] buffer = new byte[64];
            while (in.read(buffer) > 0) {
                // Further input has no meaning.
            }
        } catch (IOException ignored) {
            // The input has ended in another way.
        }
        Runtime.getRuntime().halt(0);
    }
}
