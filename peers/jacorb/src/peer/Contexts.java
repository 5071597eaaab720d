package peer;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.omg.CORBA.Any;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.LocalObject;
import org.omg.CORBA.ORB;
import org.omg.IOP.ServiceContext;
import org.omg.PortableInterceptor.ClientRequestInfo;
import org.omg.PortableInterceptor.ClientRequestInterceptor;
import org.omg.PortableInterceptor.Current;
import org.omg.PortableInterceptor.CurrentHelper;
import org.omg.PortableInterceptor.ORBInitInfo;
import org.omg.PortableInterceptor.ORBInitializer;
import org.omg.PortableInterceptor.ServerRequestInfo;
import org.omg.PortableInterceptor.ServerRequestInterceptor;

/** Service contexts: one side's interceptor adds them, and the other's reads them. */
public final class Contexts extends LocalObject implements ORBInitializer {
    private static final long serialVersionUID = 1L;
    private static final int ASKED = 0x53500101;
    private static final int ANSWERED = 0x53500102;
    /** The context of the next request, and that of the last reply; there is one caller. */
    private static volatile String said;
    private static volatile String returned;
    private static volatile int slot;

    /** The properties of an ORB with these interceptors, and with a name and endpoint of its own. */
    static Properties properties(Options options) {
        Properties all = new Properties();
        all.put("org.omg.PortableInterceptor.ORBInitializerClass." + Contexts.class.getName(), "");
        all.put("jacorb.implname", "features");
        if (!options.port.isEmpty()) all.put("OAPort", options.port);
        return all;
    }

    static void say(String text) {
        said = text;
    }

    static String returned() {
        return returned;
    }

    /** The context of the request that is being executed. */
    static String heard(ORB orb) {
        try {
            Current current = CurrentHelper.narrow(orb.resolve_initial_references("PICurrent"));
            Any value = current.get_slot(slot);
            return value.type().kind() == org.omg.CORBA.TCKind.tk_null ? "" : value.extract_string();
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override public void pre_init(ORBInitInfo info) {}

    @Override public void post_init(ORBInitInfo info) {
        try {
            slot = info.allocate_slot_id();
            info.add_client_request_interceptor(new Sender());
            info.add_server_request_interceptor(new Receiver());
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] octets(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static final class Sender extends LocalObject implements ClientRequestInterceptor {
        private static final long serialVersionUID = 1L;

        @Override public String name() { return "sender"; }
        @Override public void destroy() {}

        @Override public void send_request(ClientRequestInfo info) {
            if (said == null || !info.operation().equals("heard")) return;
            info.add_request_service_context(new ServiceContext(ASKED, octets(said)), false);
            said = null;
        }

        @Override public void receive_reply(ClientRequestInfo info) {
            try {
                returned = new String(info.get_reply_service_context(ANSWERED).context_data, StandardCharsets.ISO_8859_1);
            } catch (BAD_PARAM none) {
                returned = null;
            }
        }

        @Override public void send_poll(ClientRequestInfo info) {}
        @Override public void receive_exception(ClientRequestInfo info) {}
        @Override public void receive_other(ClientRequestInfo info) {}
    }

    private static final class Receiver extends LocalObject implements ServerRequestInterceptor {
        private static final long serialVersionUID = 1L;

        @Override public String name() { return "receiver"; }
        @Override public void destroy() {}

        @Override public void receive_request_service_contexts(ServerRequestInfo info) {
            try {
                Any value = ORB.init().create_any();
                value.insert_string(new String(info.get_request_service_context(ASKED).context_data, StandardCharsets.ISO_8859_1));
                info.set_slot(slot, value);
            } catch (BAD_PARAM none) {
                // The slot stays empty.
            } catch (org.omg.CORBA.UserException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override public void send_reply(ServerRequestInfo info) {
            if (info.operation().equals("heard")) info.add_reply_service_context(new ServiceContext(ANSWERED, octets("answered")), false);
        }

        @Override public void receive_request(ServerRequestInfo info) {}
        @Override public void send_exception(ServerRequestInfo info) {}
        @Override public void send_other(ServerRequestInfo info) {}
    }
}
