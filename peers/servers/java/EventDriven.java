import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** One thread with a selector of java.nio, which uses epoll on Linux. */
final class EventDriven {
    private final ServerSocketChannel listener;
    private final Selector selector = Selector.open();
    private final boolean hasGreeting;

    EventDriven(ServerSocketChannel listener, boolean hasGreeting) throws IOException {
        this.listener = listener;
        this.hasGreeting = hasGreeting;
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
    }

    void run() throws IOException {
        for (;;) {
            selector.select(this::handle);
        }
    }

    private void handle(SelectionKey key) {
        if (key.channel() == listener) {
            accept();
            return;
        }
        Session session = (Session) key.attachment();
        try {
            boolean isOpen = key.isWritable() ? session.write(key) : session.read(key);
            if (!isOpen) session.channel.close();
        } catch (IOException reset) {
            close(session.channel);
        }
    }

    private void accept() {
        SocketChannel channel;
        try {
            channel = listener.accept();
        } catch (IOException exhausted) {
            TransferServer.pauseBriefly(); // the connection stays in the backlog
            return;
        }
        if (channel == null) return;
        try {
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            // The buffer of a new connection has room for the greeting.
            if (hasGreeting && channel.write(ByteBuffer.wrap(Service.GREETING)) < Service.GREETING.length) {
                channel.close();
                return;
            }
            channel.register(selector, SelectionKey.OP_READ, new Session(channel));
        } catch (IOException reset) {
            close(channel);
        }
    }

    private static void close(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException ignored) {
            // The descriptor is released all the same.
        }
    }

    /** The state of a connection. */
    private static final class Session {
        final SocketChannel channel;
        private final byte[] octets = new byte[Service.REQUEST_OCTETS];
        private final ByteBuffer request = ByteBuffer.wrap(octets);
        private final ByteBuffer reply = ByteBuffer.wrap(Service.REPLY);

        Session(SocketChannel channel) {
            this.channel = channel;
        }

        /** Reads a part of a request, and answers a whole one; returns whether the connection stays open. */
        boolean read(SelectionKey key) throws IOException {
            if (channel.read(request) < 0) return false;
            if (request.hasRemaining()) return true;
            request.clear();
            int number = Service.parseRequest(octets);
            if (number < 0) return false;
            reply.position(0).limit(number);
            return number == 0 || write(key);
        }

        /** Sends more of the reply. */
        boolean write(SelectionKey key) throws IOException {
            channel.write(reply);
            int interest = reply.hasRemaining() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ;
            if (key.interestOps() != interest) key.interestOps(interest);
            return true;
        }
    }
}
