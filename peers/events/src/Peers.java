import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

/** The ORB of a client, its servants, and what they have received. */
final class Peers {
    private static final int SECONDS = 30;

    final ORB orb;
    private final POA root;

    Peers(String[] arguments) throws Exception {
        orb = ORB.init(arguments, new Properties());
        root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
    }

    org.omg.CORBA.Object serve(Servant servant) throws Exception {
        return root.servant_to_reference(servant);
    }

    Any of(int number) {
        Any any = orb.create_any();
        any.insert_long(number);
        return any;
    }

    Any of(String text) {
        Any any = orb.create_any();
        any.insert_string(text);
        return any;
    }

    /** What a servant has received, in its order. */
    static final class Received<T> {
        private final BlockingQueue<T> items = new ArrayBlockingQueue<>(1_000);

        void add(T item) {
            items.add(item);
        }

        void expect(T expected) throws Exception {
            T item = items.poll(SECONDS, TimeUnit.SECONDS);
            if (item == null) throw new IllegalStateException("expected " + expected + ", and nothing came");
            Cases.equal(item, expected);
        }

        void expectNothing() {
            if (!items.isEmpty()) throw new IllegalStateException("unexpected: " + items);
        }
    }
}
