package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;

import Callbacks.*;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/** Serves tests/interop/idl/callbacks.idl and calls its clients over their own connections, or is such a client. */
final class CallbackSides {
    private final Broker broker;
    private final POA bothWays;

    private CallbackSides(Options options) throws Exception {
        Properties initializer = new Properties();
        initializer.put("org.omg.PortableInterceptor.ORBInitializerClass.bidir_init", "org.jacorb.orb.giop.BiDirConnectionInitializer");
        broker = new Broker(options, initializer);
        Any value = broker.orb.create_any();
        BidirectionalPolicyValueHelper.insert(value, BOTH.value);
        Policy[] policies = {broker.orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, value)};
        bothWays = broker.root.create_POA("both_ways", broker.root.the_POAManager(), policies);
    }

    private org.omg.CORBA.Object activate(Servant servant) throws Exception {
        return bothWays.id_to_reference(bothWays.activate_object(servant));
    }

    static int serve(Options options) throws Exception {
        CallbackSides sides = new CallbackSides(options);
        return sides.broker.serve(sides.activate(sides.new DeskImpl()));
    }

    static int call(Options options) throws Exception {
        CallbackSides sides = new CallbackSides(options);
        Desk desk = DeskHelper.narrow(sides.broker.orb.string_to_object(options.reference));
        BellImpl rings = new BellImpl();
        Bell bell = BellHelper.narrow(sides.activate(rings));
        Suite suite = new Suite(options.only);
        suite.run("callbacks/add", () -> {
            for (int number = 0; number < 100; ++number) equal("sum", desk.have_add(bell, number, 1), number + 1);
        });
        suite.run("callbacks/echo", () -> {
            for (int length : new int[] {0, 1, 1000, 100000, 1 << 20}) {
                byte[] data = new byte[length];
                for (int at = 0; at < length; ++at) data[at] = (byte) (at % 251);
                expect(Arrays.equals(desk.have_echo(bell, data), data), "other octets of " + length);
            }
        });
        suite.run("callbacks/decline", () -> equal("why", desk.have_declined(bell, "too late"), "too late"));
        suite.run("callbacks/ring", () -> {
            // Calls that another thread has not received yet are counted the next time.
            int due = 0;
            for (int count : new int[] {0, 1, 200}) {
                due += count - desk.have_rung(bell, count);
                expect(due >= 0, "rung too often");
            }
            while (rings.rung() != 0) Thread.yield();
        });
        suite.run("callbacks/nested", () -> {
            for (int depth : new int[] {0, 1, 2, 10}) equal("depth", desk.recurse(bell, desk, depth), depth);
        });
        suite.run("callbacks/idle", () -> {
            desk.later(bell, 0);
            Suite.eventually("the bell is rung", () -> rings.rung() != 0);
        });
        suite.run("callbacks/one_connection", () -> equal("connections of the server's", desk.opened(), 0));
        desk.shutdown();
        return suite.verdict();
    }

    private final class DeskImpl extends DeskPOA {
        @Override
        public int have_add(Bell who, int a, int b) {
            return who.add(a, b);
        }

        @Override
        public byte[] have_echo(Bell who, byte[] data) {
            return who.echo(data);
        }

        @Override
        public String have_declined(Bell who, String why) {
            try {
                who.decline(why);
                return "";
            } catch (Declined declined) {
                return declined.why;
            }
        }

        @Override
        public int have_rung(Bell who, int count) {
            for (int number = 0; number < count; ++number) who.ring(number);
            return who.rung();
        }

        @Override
        public int recurse(Bell who, Desk own, int depth) {
            return depth > 0 ? who.recurse(own, who, depth - 1) + 1 : 0;
        }

        @Override
        public void later(Bell who, int number) {
            new Thread(() -> who.ring(number)).start();
        }

        @Override
        public int opened() {
            return 0;
        }

        @Override
        public void shutdown() {
            broker.shutDown();
        }
    }

    private static final class BellImpl extends BellPOA {
        private final List<Integer> numbers = new ArrayList<>();

        @Override
        public int add(int a, int b) {
            return a + b;
        }

        @Override
        public byte[] echo(byte[] data) {
            return data;
        }

        @Override
        public void decline(String why) throws Declined {
            throw new Declined(why);
        }

        @Override
        public synchronized void ring(int number) {
            numbers.add(number);
        }

        /** JacORB runs the one-ways of a connection in several threads: only their number is certain. */
        @Override
        public synchronized int rung() {
            int count = numbers.size();
            numbers.clear();
            return count;
        }

        @Override
        public int recurse(Desk other, Bell own, int depth) {
            return depth > 0 ? other.recurse(own, other, depth - 1) + 1 : 0;
        }
    }
}
