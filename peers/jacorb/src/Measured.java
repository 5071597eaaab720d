import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.omg.CORBA.Any;
import org.omg.CORBA.NVList;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Request;
import org.omg.CORBA.ServerRequest;
import org.omg.CORBA.TCKind;
import org.omg.Messaging.ExceptionHolder;
import org.omg.PortableServer.DynamicImplementation;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

/**
 * JacORB's programs of the experiments, in the form of omniORB's: `latency-server [--work MICROSECONDS] [--octets-work MICROSECONDS] [--next REFERENCE]`, `latency-client REFERENCE …`, `inflight-client REFERENCE`,
 * `servants-server [--servants N] [--dynamic 1]`, `servants-client REFERENCE`; see peers/omniorb/README.md.
 *
 * It has no package because `tools/lab/idl/latency.idl` has no module: code in a Java package cannot name such types.
 */
public final class Measured {
    private Measured() {}

    public static void main(String[] words) throws Exception {
        int status = 0;
        try {
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            switch (words[0]) {
                case "latency-server": case "servants-server": serve(words[0].startsWith("latency"), arguments); break;
                case "latency-client": LatencyClient.run(arguments); break;
                case "inflight-client": InFlightClient.run(arguments); break;
                case "servants-client": ServantsClient.run(arguments); break;
                default: throw new IllegalArgumentException("not a role: " + words[0]);
            }
        } catch (Exception error) {
            System.err.println(words[0] + ": " + error);
            status = 1;
        }
        System.out.flush();
        Runtime.getRuntime().halt(status); // the ORB's threads are not all daemons
    }

    static ORB orb() {
        Properties all = new Properties();
        all.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        all.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        all.put("OAIAddr", "127.0.0.1");
        all.put("jacorb.orb.print_version", "off");
        all.put("jacorb.connection.client.pending_reply_timeout", "30000");
        // One-way calls wait if they arrive faster than they are executed.
        all.put("jacorb.poa.queue_wait", "on");
        return ORB.init(new String[0], all);
    }

    /** The value of a numeric option. */
    static long number(String[] arguments, String option, long otherwise) {
        String word = word(arguments, option, null);
        return word == null ? otherwise : Long.parseLong(word);
    }

    static String word(String[] arguments, String option, String otherwise) {
        int at = Arrays.asList(arguments).indexOf(option);
        return at < 0 ? otherwise : arguments[at + 1];
    }

    static BinStruct[] structs(int length) {
        BinStruct[] made = new BinStruct[length];
        for (int i = 0; i < length; ++i) made[i] = new BinStruct((short) i, 'c', i, (byte) 7, i);
        return made;
    }

    interface Call {
        void make() throws Exception;
    }

    /** Makes the warm-up calls and the timed calls; returns the times of the latter as members of a JSON object. */
    static String measure(Call call, long warmUp, long calls) throws Exception {
        long[] times = new long[(int) calls];
        for (long i = 0; i < warmUp; ++i) call.make();
        for (int i = 0; i < times.length; ++i) {
            long before = System.nanoTime();
            call.make();
            times[i] = System.nanoTime() - before;
        }
        return summary(times);
    }

    /** The statistics of times as members of a JSON object. */
    static String summary(long[] times) {
        double sum = Arrays.stream(times).sum();
        Arrays.sort(times);
        return "\"calls\":" + times.length + ",\"min_ns\":" + times[0] + ",\"median_ns\":" + quantile(times, 0.5) + ",\"p90_ns\":"
            + quantile(times, 0.9) + ",\"p99_ns\":" + quantile(times, 0.99) + ",\"p999_ns\":" + quantile(times, 0.999)
            + ",\"max_ns\":" + times[times.length - 1]
            + ",\"mean_ns\":" + (long) (sum / times.length) + ",\"calls_per_second\":" + (long) (1e9 * times.length / sum);
    }

    private static long quantile(long[] sorted, double q) {
        return sorted[(int) (q * (sorted.length - 1))];
    }

    /** Whether a servant was called; set once between two queries of the directory. */
    interface CalledFlag {
        /** Whether it was called since the last query. */
        boolean takeCalled();
    }

    /** A servant that records that it was called, and counts the calls of `ping`. */
    private static final class LatencyImpl extends LatencyPOA implements CalledFlag {
        private final AtomicLong pings = new AtomicLong();
        private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        private final long workNanos;
        private final long octetsWorkNanos;
        private final Latency next;
        private volatile boolean called;

        /** Each `ping`, and each `sendOctetSeq`, computes for that processor time, or calls the next object. */
        LatencyImpl(long workMicros, long octetsWorkMicros, Latency next) {
            this.next = next;
            workNanos = workMicros * 1000;
            octetsWorkNanos = octetsWorkMicros * 1000;
        }

        private void compute(long nanos) {
            if (nanos <= 0) return;
            long end = threads.getCurrentThreadCpuTime() + nanos;
            while (threads.getCurrentThreadCpuTime() < end) Thread.onSpinWait();
        }

        private void set() {
            if (!called) called = true;
        }

        @Override public void ping() {
            set();
            if (next == null) compute(workNanos); else next.ping();
            pings.incrementAndGet();
        }

        @Override public void ping_1way() { set(); }
        @Override public void sendStructSeq(BinStruct[] s) { set(); }
        @Override public void sendOctetSeq(byte[] s) {
            set();
            if (next == null) compute(octetsWorkNanos); else next.sendOctetSeq(s);
        }
        @Override public void sendStructSeq_1way(BinStruct[] s) { set(); }
        @Override public void sendOctetSeq_1way(byte[] s) { set(); }

        @Override public boolean takeCalled() {
            boolean was = called;
            if (was) called = false;
            return was;
        }
    }

    /** Reads the arguments of each operation, and returns nothing. */
    private static final class DynamicImpl extends DynamicImplementation implements CalledFlag {
        private static final String[] INTERFACES = {LatencyHelper.id()};
        private final ORB orb;
        private volatile boolean called;

        DynamicImpl(ORB orb) {
            this.orb = orb;
        }

        @Override public boolean takeCalled() {
            boolean was = called;
            if (was) called = false;
            return was;
        }

        @Override public void invoke(ServerRequest request) {
            if (!called) called = true;
            NVList arguments = orb.create_list(0);
            if (request.operation().startsWith("sendStructSeq")) {
                Any argument = orb.create_any();
                argument.type(StructSeqHelper.type());
                arguments.add_value("s", argument, org.omg.CORBA.ARG_IN.value);
            } else if (request.operation().startsWith("sendOctetSeq")) {
                Any argument = orb.create_any();
                argument.type(OctetSeqHelper.type());
                arguments.add_value("s", argument, org.omg.CORBA.ARG_IN.value);
            }
            request.arguments(arguments);
            Any result = orb.create_any();
            result.type(orb.get_primitive_tc(TCKind.tk_void));
            request.set_result(result);
        }

        @Override public String[] _all_interfaces(POA adapter, byte[] id) {
            return INTERFACES;
        }
    }

    private static final class Directory extends ServantsPOA {
        private final Latency[] objects;
        private final CalledFlag[] flags;

        Directory(int servants) {
            objects = new Latency[servants];
            flags = new CalledFlag[servants];
        }

        @Override public int count() { return objects.length; }

        @Override public Latency[] references(int first, int howMany) {
            int from = Math.min(first, objects.length);
            return Arrays.copyOfRange(objects, from, Math.min(objects.length, from + Math.min(howMany, 1000)));
        }

        @Override public int called() {
            int count = 0;
            for (CalledFlag flag : flags) if (flag.takeCalled()) ++count;
            return count;
        }
    }

    private static void serve(boolean single, String[] arguments) throws Exception {
        int servants = (int) number(arguments, "--servants", 1);
        boolean dynamic = number(arguments, "--dynamic", 0) != 0;
        ORB orb = orb();
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        long work = number(arguments, "--work", 0);
        long octetsWork = number(arguments, "--octets-work", 0);
        String reference = word(arguments, "--next", null);
        Latency next = reference == null ? null : LatencyHelper.narrow(orb.string_to_object(reference));
        Directory directory = new Directory(servants);
        for (int i = 0; i < servants; ++i) {
            Servant servant = dynamic ? new DynamicImpl(orb) : new LatencyImpl(work, octetsWork, next);
            directory.flags[i] = (CalledFlag) servant;
            org.omg.CORBA.Object object = root.id_to_reference(root.activate_object(servant));
            directory.objects[i] = LatencyHelper.unchecked_narrow(object);
        }
        org.omg.CORBA.Object all = root.id_to_reference(root.activate_object(directory));
        System.out.println(orb.object_to_string(single ? directory.objects[0] : all));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            long pings = 0;
            for (CalledFlag flag : directory.flags) if (flag instanceof LatencyImpl) pings += ((LatencyImpl) flag).pings.get();
            System.out.println(pings);
        }
        orb.shutdown(false);
    }

    private static final class LatencyClient {
        static void run(String[] arguments) throws Exception {
            String operation = word(arguments, "--operation", "ping");
            int elements = (int) number(arguments, "--elements", 1024);
            long calls = number(arguments, "--calls", 20000);
            long warmUp = number(arguments, "--warm-up", 2000);
            Latency target = LatencyHelper.narrow(orb().string_to_object(arguments[0]));
            BinStruct[] structs = structs(elements);
            byte[] octets = new byte[elements];
            Arrays.fill(octets, (byte) 0x5a);
            Call call;
            switch (operation) {
                case "ping": call = target::ping; break;
                case "oneway": call = target::ping_1way; break;
                case "structs": call = () -> target.sendStructSeq(structs); break;
                case "octets": call = () -> target.sendOctetSeq(octets); break;
                default: throw new IllegalArgumentException("not an operation: " + operation);
            }
            boolean sized = operation.equals("structs") || operation.equals("octets");
            System.out.println("{\"peer\":\"JacORB " + org.jacorb.util.Version.version + "\",\"operation\":\"" + operation
                + "\",\"elements\":" + (sized ? elements : 0) + "," + measure(call, warmUp, calls) + "}");
        }
    }

    /** Calls in flight on one connection: each reply handler makes the next call. */
    private static final class InFlightClient {
        private final ORB orb = orb();
        private final Latency target;
        private final POA root;
        private final List<Handler> handlers = new ArrayList<>();
        private long[] times;
        private int count;
        private int pending;
        private long end;
        private long last;
        private String error;

        private InFlightClient(String reference) throws Exception {
            target = LatencyHelper.narrow(orb.string_to_object(reference));
            root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
            root.the_POAManager().activate();
            target.ping();
        }

        static void run(String[] arguments) throws Exception {
            InFlightClient client = new InFlightClient(arguments[0]);
            System.out.println("ready");
            BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in));
            for (String line = jobs.readLine(); line != null; line = jobs.readLine()) {
                String[] words = line.trim().split(" +");
                System.out.println(client.carryOut(Integer.parseInt(words[0]), Long.parseLong(words[1])));
            }
        }

        /** 0 in flight are sequential, blocking calls. */
        private String carryOut(int inFlight, long millis) throws Exception {
            times = new long[1 << 16];
            count = 0;
            long start = System.nanoTime();
            end = start + millis * 1_000_000;
            if (inFlight == 0) {
                for (long before = start; before < end; before = last) {
                    target.ping();
                    record(before);
                }
            } else {
                while (handlers.size() < inFlight) handlers.add(new Handler());
                synchronized (this) {
                    pending = inFlight;
                }
                for (Handler handler : handlers.subList(0, inFlight)) handler.next();
                synchronized (this) {
                    while (pending > 0) wait();
                    if (error != null) throw new IllegalStateException(error);
                }
            }
            return "{\"seconds\":" + (last - start) / 1e9 + "," + summary(Arrays.copyOf(times, count)) + "}";
        }

        /** Records a call that ends now; returns whether there is time for another one. */
        private synchronized boolean record(long before) {
            if (count == times.length) times = Arrays.copyOf(times, 2 * count);
            last = System.nanoTime();
            times[count++] = last - before;
            return last < end;
        }

        private synchronized void finish(String reason) {
            if (reason != null) error = reason;
            if (--pending == 0) notifyAll();
        }

        /** One call in flight at a time. */
        private final class Handler extends AMI_LatencyHandlerPOA {
            private final AMI_LatencyHandler self;
            private volatile long before;

            Handler() throws Exception {
                self = AMI_LatencyHandlerHelper.narrow(root.id_to_reference(root.activate_object(this)));
            }

            void next() {
                before = System.nanoTime();
                ((_LatencyStub) target).sendc_ping(self);
            }

            @Override public void ping() {
                if (record(before)) next();
                else finish(null);
            }

            @Override public void ping_excep(ExceptionHolder holder) {
                try {
                    holder.raise_exception();
                    finish("nothing raised");
                } catch (Exception raised) {
                    finish(raised.toString());
                }
            }

            @Override public void ping_1way() {}
            @Override public void ping_1way_excep(ExceptionHolder holder) {}
            @Override public void sendStructSeq() {}
            @Override public void sendStructSeq_excep(ExceptionHolder holder) {}
            @Override public void sendOctetSeq() {}
            @Override public void sendOctetSeq_excep(ExceptionHolder holder) {}
            @Override public void sendStructSeq_1way() {}
            @Override public void sendStructSeq_1way_excep(ExceptionHolder holder) {}
            @Override public void sendOctetSeq_1way() {}
            @Override public void sendOctetSeq_1way_excep(ExceptionHolder holder) {}
        }
    }

    /** The servant of the next call; the experiment's other programs compute the same. */
    private static final class Targets {
        private final String algorithm;
        private final Latency[] objects;
        private final long begin;
        private long calls;
        private long state;

        Targets(String algorithm, Latency[] objects, long begin) {
            this.algorithm = algorithm;
            this.objects = objects;
            this.begin = begin;
            state = begin;
        }

        Latency next() {
            long call = calls++;
            switch (algorithm) {
                case "train": return objects[(int) ((begin + call / 100) % objects.length)];
                case "round-robin": return objects[(int) ((begin + call) % objects.length)];
                case "worst-case": return objects[objects.length - 1];
                default:
                    state = state * 6364136223846793005L + 1442695040888963407L;
                    return objects[(int) ((state >>> 33) % objects.length)];
            }
        }
    }

    private static final class ServantsClient {
        private final ORB orb = orb();
        private final Servants directory;
        private final Latency[] objects;
        /** The parameters of a call: `void`, `octets-N`, `structs-N`, or `structs`, which are 1,024. */
        private String kind = "void";
        private BinStruct[] structs = {};
        private byte[] octets = {};

        private ServantsClient(String reference) {
            directory = ServantsHelper.narrow(orb.string_to_object(reference));
            objects = new Latency[directory.count()];
            for (int have = 0; have < objects.length;) {
                Latency[] some = directory.references(have, 1000);
                System.arraycopy(some, 0, objects, have, some.length);
                have += some.length;
            }
            for (Latency object : objects) object.ping_1way();
            objects[0].ping();
        }

        static void run(String[] arguments) throws Exception {
            ServantsClient client = new ServantsClient(arguments[0]);
            System.out.println("ready " + client.objects.length);
            BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in));
            for (String line = jobs.readLine(); line != null; line = jobs.readLine()) {
                System.out.println(client.carryOut(line.trim().split(" +")));
            }
        }

        /** `ALGORITHM CALL CASE STYLE WARM-UP CALLS BEGIN`. */
        private String carryOut(String[] words) throws Exception {
            Targets targets = new Targets(words[0], objects, Long.parseLong(words[6]));
            boolean oneWay = words[1].equals("oneway");
            String[] load = words[2].split("-");
            int count = load.length > 1 ? Integer.parseInt(load[1]) : 1024;
            kind = load[0];
            structs = structs(kind.equals("structs") ? count : 0);
            octets = new byte[kind.equals("octets") ? count : 0];
            Call call;
            switch (words[3]) {
                case "dii": call = () -> dynamic(targets.next(), oneWay); break;
                case "dii-reused": return "{\"absent\":\"JacORB invokes a request once only\"}";
                default:
                    if (kind.equals("void")) call = oneWay ? () -> targets.next().ping_1way() : () -> targets.next().ping();
                    else if (kind.equals("octets")) call = oneWay ? () -> targets.next().sendOctetSeq_1way(octets) : () -> targets.next().sendOctetSeq(octets);
                    else call = oneWay ? () -> targets.next().sendStructSeq_1way(structs) : () -> targets.next().sendStructSeq(structs);
            }
            // The directory is queried after the warm-up calls and after the timed calls, so that no call is pending when
            // the next part begins.
            long warmUp = Long.parseLong(words[4]);
            for (long i = 0; i < warmUp; ++i) call.make();
            directory.called();
            String times = measure(call, 0, Long.parseLong(words[5]));
            return "{" + times + ",\"servants_called\":" + directory.called() + "}";
        }

        private void dynamic(Latency target, boolean oneWay) throws Exception {
            String operation = kind.equals("void") ? "ping" : kind.equals("octets") ? "sendOctetSeq" : "sendStructSeq";
            Request request = target._request(operation + (oneWay ? "_1way" : ""));
            if (kind.equals("octets")) OctetSeqHelper.insert(request.add_in_arg(), octets);
            else if (kind.equals("structs")) StructSeqHelper.insert(request.add_in_arg(), structs);
            request.set_return_type(orb.get_primitive_tc(TCKind.tk_void));
            if (oneWay) request.send_oneway();
            else request.invoke();
            if (request.env().exception() != null) throw request.env().exception();
        }
    }
}
