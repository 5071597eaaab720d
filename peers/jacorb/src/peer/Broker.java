package peer;

import java.io.IOException;
import java.util.Properties;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

/** The ORB and its root adapter, as all programs here have them. */
final class Broker {
    /** The timeout of any call. */
    static final int TIME_LIMIT_MS = 30000;

    final ORB orb;
    final POA root;

    Broker(Options options) throws Exception {
        this(options, new Properties());
    }

    Broker(Options options, Properties more) throws Exception {
        Rmi.install();
        // ANCHOR: orb
        Properties all = new Properties();
        all.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        all.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        all.put("OAIAddr", "127.0.0.1");
        // ANCHOR_END: orb
        all.put("jacorb.giop_minor_version", options.minor);
        all.put("jacorb.native_char_codeset", options.codeset);
        all.put("jacorb.native_wchar_codeset", options.wideCodeset);
        all.put("jacorb.connection.client.pending_reply_timeout", Integer.toString(TIME_LIMIT_MS));
        all.put("jacorb.connection.client.retry_on_failure", "off");
        all.put("jacorb.retries", "0");
        // Requests wait if they arrive faster than they are executed; TRANSIENT is the default.
        all.put("jacorb.poa.queue_wait", "on");
        all.put("jacorb.orb.print_version", "off");
        all.putAll(more);
        all.putAll(options.properties);
        // ANCHOR: root
        orb = ORB.init(new String[0], all);
        root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        if (!options.holdsAtFirst) root.the_POAManager().activate();
        // ANCHOR_END: root
        if (options.tellsPort) System.out.println(((org.jacorb.orb.ORB) orb).getBasicAdapter().getPort());
    }

    org.omg.CORBA.Object activate(Servant servant) {
        try {
            return root.id_to_reference(root.activate_object(servant));
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Prints the reference on one line, then serves until a shutdown request or the end of its standard input. */
    int serve(org.omg.CORBA.Object hub) {
        return serve(hub, true);
    }

    /** The same, without output if the reference is known already. */
    int serve(org.omg.CORBA.Object hub, boolean isNew) {
        if (isNew) System.out.println(orb.object_to_string(hub));
        Thread watcher = new Thread(this::watchStandardInput);
        watcher.setDaemon(true);
        watcher.start();
        orb.run();
        return 0;
    }

    /** Does not wait for requests: one whose thread has died never completes. */
    void shutDown() {
        new Thread(() -> orb.shutdown(false)).start();
    }

    private void watchStandardInput() {
        try {
            while (System.in.read() >= 0) {
                // The input is ignored; only its end matters.
            }
        } catch (IOException ended) {
            // This is its end.
        }
        orb.shutdown(false);
    }
}
