package peer;

import Features.*;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.omg.CORBA.Any;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.LocalObject;
import org.omg.CORBA.NVList;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.ServerRequest;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.TCKind;
import org.omg.PortableServer.AdapterActivator;
import org.omg.PortableServer.Current;
import org.omg.PortableServer.CurrentHelper;
import org.omg.PortableServer.DynamicImplementation;
import org.omg.PortableServer.ForwardRequest;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.IdUniquenessPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAManager;
import org.omg.PortableServer.RequestProcessingPolicyValue;
import org.omg.PortableServer.Servant;
import org.omg.PortableServer.ServantActivator;
import org.omg.PortableServer.ServantLocator;
import org.omg.PortableServer.ServantLocatorPackage.CookieHolder;
import org.omg.PortableServer.ServantRetentionPolicyValue;

/** Serves tests/interop/idl/features.idl, and restarts on request. */
final class FeaturesServer {
    private final Broker broker;
    private final POA root;
    private final int generation;
    private final AtomicBoolean again;

    private FeaturesServer(Broker broker, int generation, AtomicBoolean again) {
        this.broker = broker;
        this.root = broker.root;
        this.generation = generation;
        this.again = again;
    }

    static int run(Options options) throws Exception {
        AtomicBoolean again = new AtomicBoolean(true);
        // No client may get OBJECT_NOT_EXIST for an adapter that is about to be created.
        options.holdsAtFirst = true;
        for (int generation = 1; again.getAndSet(false); ++generation) {
            Broker broker = new Broker(options, Contexts.properties(options));
            FeaturesServer server = new FeaturesServer(broker, generation, again);
            org.omg.CORBA.Object desk = server.persistent("desk", server.new DeskImpl());
            broker.root.the_POAManager().activate();
            broker.serve(desk, generation == 1);
            broker.orb.destroy();
        }
        return 0;
    }

    /** The operations of every object; without a name of its own an object reads its ID from `Current`. */
    private final class TargetImpl extends TargetPOA {
        private final String name;
        private volatile int noted;

        TargetImpl(String name) {
            this.name = name;
        }

        @Override public String name() {
            if (name != null) return name;
            try {
                Current current = CurrentHelper.narrow(broker.orb.resolve_initial_references("POACurrent"));
                return new String(current.get_object_id(), StandardCharsets.ISO_8859_1);
            } catch (org.omg.CORBA.UserException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override public int halve(int whole, StringHolder text, DoubleHolder rest) throws Refused {
            if (whole < 0) throw new Refused("negative");
            text.value += text.value;
            rest.value = whole / 2.0;
            return whole / 2;
        }

        @Override public void note(int number, int milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            noted = number;
        }

        @Override public int noted() { return noted; }
        @Override public String heard() { return Contexts.heard(broker.orb); }
    }

    /** The same, with operations known only at run time. */
    private final class DynamicTarget extends DynamicImplementation {
        private volatile int noted;

        @Override public String[] _all_interfaces(POA adapter, byte[] id) {
            return new String[] {TargetHelper.id()};
        }

        private Any any(TCKind kind) {
            Any made = broker.orb.create_any();
            made.type(broker.orb.get_primitive_tc(kind));
            return made;
        }

        @Override public void invoke(ServerRequest request) {
            ORB orb = broker.orb;
            NVList arguments = orb.create_list(0);
            Any result = orb.create_any();
            switch (request.operation()) {
                case "_get_name":
                    request.arguments(arguments);
                    result.insert_string("dynamic");
                    break;
                case "noted":
                    request.arguments(arguments);
                    result.insert_long(noted);
                    break;
                case "note":
                    arguments.add_value("number", any(TCKind.tk_long), org.omg.CORBA.ARG_IN.value);
                    arguments.add_value("milliseconds", any(TCKind.tk_ulong), org.omg.CORBA.ARG_IN.value);
                    request.arguments(arguments);
                    noted = value(arguments, 0).extract_long();
                    result.type(orb.get_primitive_tc(TCKind.tk_void));
                    break;
                case "halve":
                    if (!halve(request, arguments, result)) return;
                    break;
                default: throw new org.omg.CORBA.BAD_OPERATION();
            }
            request.set_result(result);
        }

        private boolean halve(ServerRequest request, NVList arguments, Any result) {
            arguments.add_value("whole", any(TCKind.tk_long), org.omg.CORBA.ARG_IN.value);
            arguments.add_value("text", any(TCKind.tk_string), org.omg.CORBA.ARG_INOUT.value);
            arguments.add_value("rest", any(TCKind.tk_double), org.omg.CORBA.ARG_OUT.value);
            request.arguments(arguments);
            int whole = value(arguments, 0).extract_long();
            if (whole < 0) {
                Any refused = broker.orb.create_any();
                RefusedHelper.insert(refused, new Refused("negative"));
                request.set_exception(refused);
                return false;
            }
            String text = value(arguments, 1).extract_string();
            value(arguments, 1).insert_string(text + text);
            value(arguments, 2).insert_double(whole / 2.0);
            result.insert_long(whole / 2);
            return true;
        }

        private Any value(NVList arguments, int at) {
            try {
                return arguments.item(at).value();
            } catch (org.omg.CORBA.Bounds error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** The behaviour of both kinds of servant manager for a name. */
    private Servant find(byte[] id, org.omg.CORBA.Object plain) throws ForwardRequest {
        String name = new String(id, StandardCharsets.ISO_8859_1);
        if (name.equals("moved")) throw new ForwardRequest(plain);
        if (name.equals("gone")) throw new OBJECT_NOT_EXIST(0, CompletionStatus.COMPLETED_NO);
        return new TargetImpl(name);
    }

    private final class Locator extends LocalObject implements ServantLocator {
        private static final long serialVersionUID = 1L;
        private final transient org.omg.CORBA.Object plain;

        Locator(org.omg.CORBA.Object plain) {
            this.plain = plain;
        }

        @Override public Servant preinvoke(byte[] id, POA adapter, String operation, CookieHolder cookie) throws ForwardRequest {
            return find(id, plain);
        }

        @Override public void postinvoke(byte[] id, POA adapter, String operation, Object cookie, Servant servant) {}
    }

    private final class Activator extends LocalObject implements ServantActivator {
        private static final long serialVersionUID = 1L;
        private final transient org.omg.CORBA.Object plain;
        private final transient Map<String, Integer> made = new ConcurrentHashMap<>();

        Activator(org.omg.CORBA.Object plain) {
            this.plain = plain;
        }

        @Override public Servant incarnate(byte[] id, POA adapter) throws ForwardRequest {
            made.merge(new String(id, StandardCharsets.ISO_8859_1), 1, Integer::sum);
            return find(id, plain);
        }

        @Override public void etherealize(byte[] id, POA adapter, Servant servant, boolean cleanup, boolean remaining) {}
    }

    private final class Maker extends LocalObject implements AdapterActivator {
        private static final long serialVersionUID = 1L;
        private final transient org.omg.CORBA.Object plain;

        Maker(org.omg.CORBA.Object plain) {
            this.plain = plain;
        }

        @Override public boolean unknown_adapter(POA parent, String name) {
            if (!name.equals("adapted")) return false;
            try {
                adaptedAdapter().set_servant_manager(new Locator(plain));
                return true;
            } catch (org.omg.CORBA.UserException error) {
                return false;
            }
        }
    }

    private POA adaptedAdapter() throws org.omg.CORBA.UserException {
        return adapter("adapted", root.the_POAManager(), root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT),
            root.create_servant_retention_policy(ServantRetentionPolicyValue.NON_RETAIN),
            root.create_request_processing_policy(RequestProcessingPolicyValue.USE_SERVANT_MANAGER));
    }

    // ANCHOR: adapter
    /** A child of the root with application-defined IDs. */
    private POA adapter(String name, POAManager manager, Policy... more) throws org.omg.CORBA.UserException {
        Policy[] all = java.util.Arrays.copyOf(more, more.length + 1);
        all[more.length] = root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID);
        return root.create_POA(name, manager, all);
    }

    private static org.omg.CORBA.Object activated(POA adapter, String name, Servant servant) throws org.omg.CORBA.UserException {
        byte[] id = name.getBytes(StandardCharsets.ISO_8859_1);
        adapter.activate_object_with_id(id, servant);
        return adapter.id_to_reference(id);
    }
    // ANCHOR_END: adapter

    private org.omg.CORBA.Object persistent(String name, Servant servant) throws org.omg.CORBA.UserException {
        POA adapter = adapter(name, root.the_POAManager(), root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT));
        return activated(adapter, name, servant);
    }

    private final class DeskImpl extends DeskPOA {
        private final Target plain = TargetHelper.narrow(broker.activate(new TargetImpl("plain")));
        private final Target dynamically = TargetHelper.narrow(broker.activate(new DynamicTarget()));
        private final Activator activator = new Activator(plain);
        private final POA located;
        private final POA activated;
        private final POA byDefault;
        private final Target held;
        private final POAManager holding;
        private final Target discarded;
        private final Target destroyed;
        private final Target persistent;

        DeskImpl() throws Exception {
            ((org.jacorb.orb.ORB) broker.orb).addObjectKey("Greeter", broker.orb.object_to_string(plain));
            POAManager active = root.the_POAManager();
            Policy byManager = root.create_request_processing_policy(RequestProcessingPolicyValue.USE_SERVANT_MANAGER);
            Policy notRetained = root.create_servant_retention_policy(ServantRetentionPolicyValue.NON_RETAIN);
            located = adapter("located", active, byManager, notRetained);
            located.set_servant_manager(new Locator(plain));
            activated = adapter("activated", active, byManager);
            activated.set_servant_manager(activator);
            byDefault = adapter("by_default", active, notRetained,
                root.create_id_uniqueness_policy(IdUniquenessPolicyValue.MULTIPLE_ID),
                root.create_request_processing_policy(RequestProcessingPolicyValue.USE_DEFAULT_SERVANT));
            byDefault.set_servant(new TargetImpl(null));
            root.the_activator(new Maker(plain));
            POA holder = adapter("held", null);
            held = TargetHelper.unchecked_narrow(FeaturesServer.activated(holder, "held", new TargetImpl("held")));
            holding = holder.the_POAManager();
            POA discarder = adapter("discarded", null);
            discarded = TargetHelper.unchecked_narrow(FeaturesServer.activated(discarder, "discarded", new TargetImpl("discarded")));
            discarder.the_POAManager().discard_requests(false);
            POA doomed = adapter("destroyed", active);
            destroyed = TargetHelper.unchecked_narrow(FeaturesServer.activated(doomed, "destroyed", new TargetImpl("destroyed")));
            doomed.destroy(true, true);
            persistent = TargetHelper.unchecked_narrow(FeaturesServer.this.persistent("persistent", new TargetImpl("persistent")));
        }

        private Target named(POA adapter, String name) {
            try {
                byte[] id = name.getBytes(StandardCharsets.ISO_8859_1);
                return TargetHelper.unchecked_narrow(adapter.create_reference_with_id(id, TargetHelper.id()));
            } catch (org.omg.CORBA.UserException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override public Target plain() { return plain; }
        @Override public Target dynamically() { return dynamically; }
        @Override public Target located(String name) { return named(located, name); }
        @Override public Target activated(String name) { return named(activated, name); }
        @Override public int incarnations(String name) { return activator.made.getOrDefault(name, 0); }
        @Override public Target by_default(String name) { return named(byDefault, name); }

        /** The adapter of the reference is destroyed before any client can use it. */
        @Override public Target adapted(String name) {
            try {
                POA adapter = adaptedAdapter();
                Target target = named(adapter, name);
                // A call may not wait for adapters of its own ORB, but another thread may.
                Thread destroyer = new Thread(() -> adapter.destroy(false, true));
                destroyer.start();
                destroyer.join();
                return target;
            } catch (org.omg.CORBA.UserException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override public Target held() { return held; }

        @Override public void release() {
            try {
                holding.activate();
            } catch (org.omg.CORBA.UserException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override public Target discarded() { return discarded; }
        @Override public Target destroyed() { return destroyed; }
        @Override public Target persistent() { return persistent; }
        @Override public int generation() { return generation; }

        @Override public void restart() {
            again.set(true);
            broker.shutDown();
        }

        @Override public void shutdown() {
            broker.shutDown();
        }
    }
}
