import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The service: a greeting, then for each request of four digits that many octets 'A', until the client closes. */
final class Service {
    static final int REQUEST_OCTETS = 4;
    static final int MAX_REPLY = 9999;
    /** With its final NUL, as in the paper. */
    static final byte[] GREETING = "Hello\n\0".getBytes(StandardCharsets.US_ASCII);
    static final byte[] REPLY = new byte[MAX_REPLY];

    static {
        Arrays.fill(REPLY, (byte) 'A');
    }

    private Service() {}

    /** Returns the number of octets for which a request asks, or -1 if it has other characters than digits. */
    static int parseRequest(byte[] request) {
        int octets = 0;
        for (byte digit : request) {
            if (digit < '0' || digit > '9') return -1;
            octets = 10 * octets + (digit - '0');
        }
        return octets;
    }

    /** Serves a connection by blocking calls, and closes it. */
    static void serve(Socket connection, boolean hasGreeting) {
        try (connection) {
            connection.setTcpNoDelay(true);
            InputStream in = connection.getInputStream();
            OutputStream out = connection.getOutputStream();
            byte[] request = new byte[REQUEST_OCTETS];
            if (hasGreeting) out.write(GREETING);
            while (in.readNBytes(request, 0, REQUEST_OCTETS) == REQUEST_OCTETS) {
                int octets = parseRequest(request);
                if (octets < 0) return;
                out.write(REPLY, 0, octets);
            }
        } catch (IOException closed) {
            // The client has closed or reset its connection, which is then closed here, too.
        }
    }
}
