package peer;

import static peer.Suite.check;
import static peer.Suite.equal;
import static peer.Suite.eventually;
import static peer.Suite.raises;

import Interop.*;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.StringHolder;

/** Calls everything in tests/interop/idl/interop.idl; objects and inheritance are in ObjectCases. */
final class TypesClient {
    private static final int USER_MINOR = 0x12345678;

    private final Broker broker;
    private final Suite suite;

    private TypesClient(Broker broker, Suite suite) {
        this.broker = broker;
        this.suite = suite;
    }

    static int run(Options options) throws Exception {
        Broker broker = new Broker(options);
        Suite suite = new Suite(options.only);
        Hub hub = HubHelper.narrow(broker.orb.string_to_object(options.reference));
        TypesClient client = new TypesClient(broker, suite);
        client.hub(hub);
        Rotate.run(suite, "primitives", PrimitivesOperations.class, hub.the_primitives());
        Rotate.run(suite, "strings", StringsOperations.class, hub.the_strings());
        Rotate.run(suite, "sequences", SequencesOperations.class, hub.the_sequences());
        Rotate.run(suite, "structs", StructsOperations.class, hub.the_structs());
        Rotate.run(suite, "arrays", ArraysOperations.class, hub.the_arrays());
        Objects objects = hub.the_objects();
        new ObjectCases(broker, suite).objects(objects);
        new ObjectCases(broker, suite).inheritance(hub.the_lowest());
        client.errors(hub.the_errors());
        client.bulk(hub.the_bulk());
        client.attributes(hub.the_attributes(), objects);
        client.oneways(hub.the_oneways());
        suite.run("shutdown", hub::shutdown);
        return suite.verdict();
    }

    private static Interop.Record entry(int seed, int role) {
        return new Fill(seed, role).make(Interop.Record.class);
    }

    private void hub(Hub hub) {
        suite.run("hub/nothing", () -> {
            for (int i = 0; i < 100; ++i) hub.nothing();
        });
        suite.run("hub/constants", () -> {
            Constants own = new Constants(SHORT_LEAST.value, USHORT_MOST.value, LONG_LEAST.value, ULONG_MIXED.value,
                LONGLONG_LEAST.value, ULONGLONG_MOST.value, FLOAT_HALF.value, DOUBLE_THIRD.value, YES.value, TAB.value,
                E_ACUTE.value, OCTET_MOST.value, GREETING.value, BOUND.value, FAVOURITE.value);
            equal("constants", Show.show(hub.all_constants()), Show.show(own));
        });
        suite.run("hub/mixed", () -> {
            RecordHolder entry = new RecordHolder(entry(7, 2));
            DoubleHolder third = new DoubleHolder();
            StringHolder reversed = new StringHolder();
            ColourHolder next = new ColourHolder();
            equal("length", hub.mixed("Gr\u00fc\u00df", third, entry, reversed, Colour.ultra_violet, next), 4);
            equal("third", third.value, DOUBLE_THIRD.value);
            check("entry", entry.value, Shape.of(Interop.Record.class), 7, 4);
            equal("reversed", reversed.value, "\u00df\u00fcrG");
            equal("next", next.value, Colour.red);
        });
        suite.run("hub/mixed-raises", () -> {
            RecordHolder entry = new RecordHolder(entry(7, 2));
            raises(Mismatch.class, () -> mixed(hub, "mismatch", entry));
            Plain plain = raises(Plain.class, () -> mixed(hub, "plain", entry));
            equal("code", plain.code, -1);
            equal("why", plain.why, "plain");
            check("entry", entry.value, Shape.of(Interop.Record.class), 7, 2); // untouched
        });
        suite.run("hub/keywords", () -> {
            IntHolder loop = new IntHolder();
            equal("product", hub.type(6, 7, loop), 42);
            equal("difference", loop.value, -1);
        });
        suite.run("hub/context", () -> {
            // The stubs have no parameter for it, and the ORB has no object.
            org.omg.CORBA.Context context = broker.orb.get_default_context();
            org.omg.CORBA.Any name = broker.orb.create_any();
            name.insert_string("Grace");
            context.set_one_value("user.name", name);
            equal("surroundings", hub.surroundings("again"), "- Grace - again");
        });
        suite.run("hub/implicit", () -> {
            equal("is a hub", hub._is_a(HubHelper.id()), true);
            equal("is an object", hub._is_a("IDL:omg.org/CORBA/Object:1.0"), true);
            equal("is a node", hub._is_a(NodeHelper.id()), false);
            equal("is gone", hub._non_existent(), false);
        });
    }

    private static void mixed(Hub hub, String text, RecordHolder entry) throws Exception {
        hub.mixed(text, new DoubleHolder(), entry, new StringHolder(), Colour.red, new ColourHolder());
    }

    private void errors(Errors target) {
        suite.run("errors/user", () -> {
            equal("none", target.raise_user(0, 0), 17);
            raises(Empty.class, () -> target.raise_user(1, 0));
            Plain plain = raises(Plain.class, () -> target.raise_user(2, 99));
            equal("code", plain.code, 99);
            equal("why", plain.why, GREETING.value);
            equal("what", raises(Mismatch.class, () -> target.raise_user(4, 0)).what, "as you asked");
        });
        suite.seeded("errors/user-rich", seed -> {
            Rich rich = raises(Rich.class, () -> target.raise_user(3, seed));
            check("rich", rich, Shape.of(Rich.class), seed, 1);
        });
        for (String name : SystemExceptions.NAMES) {
            suite.run("errors/" + name, () -> {
                for (int completed = 0; completed < 3; ++completed) {
                    int status = completed;
                    org.omg.CORBA.SystemException seen = raises(org.omg.CORBA.SystemException.class,
                        () -> target.raise_system(name, USER_MINOR + status, status));
                    equal("name", seen.getClass().getSimpleName(), name);
                    equal("minor", seen.minor, USER_MINOR + completed);
                    equal("completed", seen.completed.value(), completed);
                }
            });
        }
        suite.run("errors/unknown-operation", () -> {
            Bulk bulk = BulkHelper.unchecked_narrow(target);
            org.omg.CORBA.BAD_OPERATION seen = raises(org.omg.CORBA.BAD_OPERATION.class, () -> bulk.text(0, "", 0));
            equal("completed", seen.completed, CompletionStatus.COMPLETED_NO);
        });
        suite.run("errors/timeout", () -> {
            equal("in time", target.sleep(20), 20);
            Errors hurried = ErrorsHelper.unchecked_narrow(Policies.roundtrip(broker.orb, target, 150));
            raises(org.omg.CORBA.TIMEOUT.class, () -> hurried.sleep(1000));
            equal("the next call", target.sleep(0), 0);
        });
    }

    /** Around zero, around the 8 KiB from which omniORB sends fragments, and far beyond. */
    private static final int[] OCTETS = {0, 1, 1000, 8100, 8150, 8176, 8191, 8192, 8193, 16384, 65536, 300001, 1000000};

    private interface Exchange {
        void call(int seed, int length, int answer) throws Exception;
    }

    private static void sizes(int unit, Exchange exchange) throws Exception {
        int seed = 0;
        for (int out : OCTETS) {
            for (int answer : new int[] {OCTETS[seed % OCTETS.length], 0, 40000}) {
                ++seed;
                exchange.call(seed, out / unit, answer / unit);
            }
        }
    }

    private static void same(Object seen, Object expected) throws Suite.Failure {
        String difference = Show.difference("answer", seen, expected);
        if (difference != null) throw new Suite.Failure(difference);
    }

    private void bulk(Bulk target) {
        suite.run("bulk/octets", () -> sizes(1, (seed, length, answer) ->
            same(target.octets(seed, Patterns.octets(seed, length), answer), Patterns.octets(seed + 1, answer))));
        Exchange doubles = (seed, length, answer) ->
            same(target.doubles(seed, Patterns.doubles(seed, length), answer), Patterns.doubles(seed + 1, answer));
        suite.run("bulk/doubles", () -> sizes(8, doubles));
        suite.run("bulk/structs", () -> sizes(24, (seed, length, answer) ->
            same(target.structs(seed, Patterns.structs(seed, length), answer), Patterns.structs(seed + 1, answer))));
        suite.run("bulk/strings", () -> sizes(16, (seed, length, answer) ->
            same(target.strings(seed, Patterns.strings(seed, length), answer), Patterns.strings(seed + 1, answer))));
        suite.run("bulk/text", () -> {
            for (int i = 0; i < OCTETS.length; ++i) {
                String answer = target.text(i + 1, Patterns.text(i + 1, OCTETS[i]), OCTETS[i]);
                same(answer, Patterns.text(i + 2, OCTETS[i]));
            }
        });
        suite.run("bulk/threads", () -> threads(doubles));
    }

    private static void threads(Exchange exchange) throws Exception {
        Thread[] threads = new Thread[8];
        Throwable[] faults = new Throwable[threads.length];
        for (int t = 0; t < threads.length; ++t) {
            int number = t;
            threads[t] = new Thread(() -> {
                try {
                    for (int seed = number * 100; seed < number * 100 + 50; ++seed) {
                        int length = seed * 7919 % 20000;
                        exchange.call(seed, length, length / 2);
                    }
                } catch (Throwable error) {
                    faults[number] = error;
                }
            });
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        for (Throwable fault : faults) {
            if (fault != null) throw new Suite.Failure(Suite.describe(fault));
        }
    }

    private void attributes(Attributes target, Objects objects) {
        Shape[] shapes = {
            Shape.ofHolder("short", org.omg.CORBA.ShortHolder.class), Shape.ofHolder("string", StringHolder.class),
            Shape.of(Colour.class), Shape.of(Point.class), Shape.of(Interop.Record.class),
            Shape.ofHolder("doubles", DoubleSeqHolder.class), Shape.ofHolder("cube", CubeHolder.class),
        };
        suite.seeded("attributes/read-write", seed -> {
            int before = target.writes();
            Object[] values = new Object[shapes.length];
            for (int i = 0; i < shapes.length; ++i) values[i] = new Fill(seed, i + 1).make(shapes[i]);
            target.number((Short) values[0]);
            target.title((String) values[1]);
            target.hue((Colour) values[2]);
            target.place((Point) values[3]);
            target.entry((Interop.Record) values[4]);
            target.numbers((double[]) values[5]);
            target.block((int[][][]) values[6]);
            equal("writes", target.writes(), before + 7);
            Object[] seen = {target.number(), target.title(), target.hue(), target.place(), target.entry(), target.numbers(),
                target.block()};
            for (int i = 0; i < shapes.length; ++i) check("attribute " + i, seen[i], shapes[i], seed, i + 1);
        });
        suite.run("attributes/object", () -> {
            target.peer(objects.make(8));
            equal("id", target.peer().id(), 8);
            target.peer(null);
            equal("nil", target.peer(), null);
        });
        suite.run("attributes/read-only", () -> {
            equal("third", target.third(), DOUBLE_THIRD.value);
            equal("tenth", target.tenth(), 0.1);
        });
    }

    private void oneways(Oneways target) {
        suite.run("oneways/ping", () -> {
            int before = target.pings();
            for (int i = 0; i < 100; ++i) target.ping();
            eventually("100 pings", () -> target.pings() == before + 100);
        });
        suite.run("oneways/note", () -> {
            int before = target.notes();
            Shape doubles = Shape.ofHolder("doubles", DoubleSeqHolder.class);
            for (int seed = 0; seed < Suite.SEEDS; ++seed) {
                target.note(seed, new Fill(seed, 1).text(0), entry(seed, 2), (double[]) new Fill(seed, 3).make(doubles));
            }
            eventually("all notes", () -> {
                equal("complaint", target.complaint(), "");
                return target.notes() == before + Suite.SEEDS;
            });
        });
    }
}
