package peer;

import Interop.*;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.StringHolder;
import org.omg.PortableServer.Servant;

/** Serves tests/interop/idl/interop.idl. */
final class TypesServer {
    private final Broker broker;

    private TypesServer(Broker broker) {
        this.broker = broker;
    }

    static int run(Options options) throws Exception {
        Broker broker = new Broker(options);
        return broker.serve(broker.activate(new TypesServer(broker).new HubImpl()));
    }

    private final class HubImpl extends HubPOA {
        private final Primitives primitives = PrimitivesHelper.narrow(on(new PrimitivesPOATie(Rotate.servant(PrimitivesOperations.class))));
        private final Strings strings = StringsHelper.narrow(on(new StringsPOATie(Rotate.servant(StringsOperations.class))));
        private final Sequences sequences = SequencesHelper.narrow(on(new SequencesPOATie(Rotate.servant(SequencesOperations.class))));
        private final Structs structs = StructsHelper.narrow(on(new StructsPOATie(Rotate.servant(StructsOperations.class))));
        private final Arrays arrays = ArraysHelper.narrow(on(new ArraysPOATie(Rotate.servant(ArraysOperations.class))));
        private final Objects objects = ObjectsHelper.narrow(on(new ObjectsImpl(broker)));
        private final Lowest lowest = LowestHelper.narrow(on(new LowestImpl()));
        private final Errors errors = ErrorsHelper.narrow(on(new ErrorsImpl()));
        private final Bulk bulk = BulkHelper.narrow(on(new BulkImpl()));
        private final Attributes attributes = AttributesHelper.narrow(on(new AttributesImpl()));
        private final Oneways oneways = OnewaysHelper.narrow(on(new OnewaysImpl()));

        private org.omg.CORBA.Object on(Servant servant) {
            return broker.activate(servant);
        }

        @Override public void nothing() {}

        @Override public Constants all_constants() {
            return new Constants(SHORT_LEAST.value, USHORT_MOST.value, LONG_LEAST.value, ULONG_MIXED.value, LONGLONG_LEAST.value,
                ULONGLONG_MOST.value, FLOAT_HALF.value, DOUBLE_THIRD.value, YES.value, TAB.value, E_ACUTE.value, OCTET_MOST.value,
                GREETING.value, BOUND.value, FAVOURITE.value);
        }

        @Override public int mixed(String text, DoubleHolder third, RecordHolder entry, StringHolder reversed, Colour hue,
                                   ColourHolder next) throws Mismatch, Plain {
            if (text.equals("mismatch")) throw new Mismatch("as you asked");
            if (text.equals("plain")) throw new Plain(-1, text);
            Rotate.refuse(Show.difference("entry", entry.value, new Fill(7, 2).make(Interop.Record.class)));
            third.value = DOUBLE_THIRD.value;
            entry.value = new Fill(7, 4).make(Interop.Record.class);
            reversed.value = new StringBuilder(text).reverse().toString();
            next.value = Colour.from_int((hue.value() + 1) % 4);
            return text.length();
        }

        @Override public int type(int match, int impl, org.omg.CORBA.IntHolder loop) {
            loop.value = match - impl;
            return match * impl;
        }

        /** JacORB's mapping to Java has no contexts. */
        @Override public String surroundings(String before) {
            return "- - - " + before;
        }

        @Override public Primitives the_primitives() { return primitives; }
        @Override public Strings the_strings() { return strings; }
        @Override public Sequences the_sequences() { return sequences; }
        @Override public Structs the_structs() { return structs; }
        @Override public Arrays the_arrays() { return arrays; }
        @Override public Objects the_objects() { return objects; }
        @Override public Lowest the_lowest() { return lowest; }
        @Override public Errors the_errors() { return errors; }
        @Override public Bulk the_bulk() { return bulk; }
        @Override public Attributes the_attributes() { return attributes; }
        @Override public Oneways the_oneways() { return oneways; }

        @Override public void shutdown() {
            broker.shutDown();
        }
    }

    private static final class LowestImpl extends LowestPOA {
        private int value;

        @Override public String base_name() { return "base"; }
        @Override public int base_value() { return value; }
        @Override public void base_value(int value) { this.value = value; }
        @Override public String left_name() { return "left"; }
        @Override public String right_name() { return "right"; }
        @Override public String diamond_name() { return "diamond"; }

        @Override public Diamond[] descend(Base origin) throws Interop.LowestPackage.Deep {
            if (origin == null) throw new Interop.LowestPackage.Deep("nil");
            return new Diamond[] {_this(), DiamondHelper.narrow(origin)};
        }
    }

    private static final class ErrorsImpl extends ErrorsPOA {
        @Override public int raise_user(int which, int seed) throws Empty, Plain, Rich, Mismatch {
            switch (which) {
                case 0: return 17;
                case 1: throw new Empty();
                case 2: throw new Plain(seed, GREETING.value);
                case 3: throw new Fill(seed, 1).make(Rich.class);
                default: throw new Mismatch("as you asked");
            }
        }

        @Override public void raise_system(String name, int minor, int completed) {
            throw SystemExceptions.make(name, minor, completed);
        }

        @Override public int sleep(int milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            return milliseconds;
        }
    }

    private static final class BulkImpl extends BulkPOA {
        private static void expect(Object seen, Object pattern) throws Mismatch {
            Rotate.refuse(Show.difference("data", seen, pattern));
        }

        @Override public byte[] octets(int seed, byte[] data, int answer) throws Mismatch {
            expect(data, Patterns.octets(seed, data.length));
            return Patterns.octets(seed + 1, answer);
        }

        @Override public double[] doubles(int seed, double[] data, int answer) throws Mismatch {
            expect(data, Patterns.doubles(seed, data.length));
            return Patterns.doubles(seed + 1, answer);
        }

        @Override public BinStruct[] structs(int seed, BinStruct[] data, int answer) throws Mismatch {
            expect(data, Patterns.structs(seed, data.length));
            return Patterns.structs(seed + 1, answer);
        }

        @Override public String[] strings(int seed, String[] data, int answer) throws Mismatch {
            expect(data, Patterns.strings(seed, data.length));
            return Patterns.strings(seed + 1, answer);
        }

        @Override public String text(int seed, String data, int answer) throws Mismatch {
            expect(data, Patterns.text(seed, data.length()));
            return Patterns.text(seed + 1, answer);
        }
    }

    private static final class AttributesImpl extends AttributesPOA {
        private final Map<String, Object> kept = new ConcurrentHashMap<>();
        private Node peer;
        private int writes;

        private synchronized void keep(String name, Object value) {
            kept.put(name, value);
            ++writes;
        }

        @SuppressWarnings("unchecked")
        private <T> T kept(String name) {
            return (T) kept.get(name);
        }

        @Override public short number() { return this.<Short>kept("number"); }
        @Override public void number(short x) { keep("number", x); }
        @Override public String title() { return kept("title"); }
        @Override public void title(String x) { keep("title", x); }
        @Override public Colour hue() { return kept("hue"); }
        @Override public void hue(Colour x) { keep("hue", x); }
        @Override public Point place() { return kept("place"); }
        @Override public void place(Point x) { keep("place", x); }
        @Override public Interop.Record entry() { return kept("entry"); }
        @Override public void entry(Interop.Record x) { keep("entry", x); }
        @Override public double[] numbers() { return kept("numbers"); }
        @Override public void numbers(double[] x) { keep("numbers", x); }
        @Override public int[][][] block() { return kept("block"); }
        @Override public void block(int[][][] x) { keep("block", x); }
        @Override public synchronized Node peer() { return peer; }

        @Override public synchronized void peer(Node x) {
            peer = x;
            ++writes;
        }

        @Override public synchronized int writes() { return writes; }
        @Override public double third() { return DOUBLE_THIRD.value; }
        @Override public double tenth() { return 0.1; }
    }

    private static final class OnewaysImpl extends OnewaysPOA {
        private int pings;
        private int notes;
        private String complaint = "";

        @Override public synchronized void ping() { ++pings; }

        @Override public synchronized void note(int seed, String text, Interop.Record entry, double[] numbers) {
            try {
                Rotate.refuse(Show.difference("text", text, new Fill(seed, 1).text(0)));
                Rotate.refuse(Show.difference("entry", entry, new Fill(seed, 2).make(Interop.Record.class)));
                Rotate.refuse(Show.difference("numbers", numbers, new Fill(seed, 3).make(Shape.ofHolder("doubles", DoubleSeqHolder.class))));
                ++notes;
            } catch (Mismatch mismatch) {
                complaint = mismatch.what;
            }
        }

        @Override public synchronized int pings() { return pings; }
        @Override public synchronized int notes() { return notes; }
        @Override public synchronized String complaint() { return complaint; }
    }
}
