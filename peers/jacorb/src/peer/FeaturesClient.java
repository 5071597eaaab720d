package peer;

import static peer.Suite.equal;
import static peer.Suite.eventually;
import static peer.Suite.expect;
import static peer.Suite.raises;

import Features.*;
import org.omg.CORBA.DoubleHolder;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.Request;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TRANSIENT;
import org.omg.Messaging.SYNC_WITH_SERVER;
import org.omg.Messaging.SYNC_WITH_TARGET;

/** Calls everything in tests/interop/idl/features.idl. */
final class FeaturesClient {
    private final Options options;
    private final Broker broker;
    private final Suite suite;
    private final Desk desk;
    private final Target plain;

    private FeaturesClient(Options options, Broker broker, Suite suite, Desk desk) {
        this.options = options;
        this.broker = broker;
        this.suite = suite;
        this.desk = desk;
        plain = desk.plain();
    }

    static int run(Options options) throws Exception {
        Broker broker = new Broker(options, Contexts.properties(options));
        Suite suite = new Suite(options.only);
        Desk desk = DeskHelper.narrow(broker.orb.string_to_object(options.reference));
        FeaturesClient client = new FeaturesClient(options, broker, suite, desk);
        client.operations();
        client.adapters();
        client.managers();
        client.keys();
        client.dynamicRequests();
        client.dynamicSkeletons();
        client.oneways();
        client.contexts();
        client.restart();
        suite.run("shutdown", desk::shutdown);
        return suite.verdict();
    }

    private void operations() {
        suite.run("operations/is-a", () -> {
            equal("a target", plain._is_a(TargetHelper.id()), true);
            equal("a desk", plain._is_a(DeskHelper.id()), false);
        });
        suite.run("operations/non-existent", () -> {
            equal("plain", plain._non_existent(), false);
            equal("destroyed", desk.destroyed()._non_existent(), true);
        });
        suite.run("operations/repository-id", () -> {
            Request request = implicit("_repository_id", TCKind.tk_string);
            request.invoke();
            if (request.env().exception() != null) throw request.env().exception();
            equal("id", request.return_value().extract_string(), TargetHelper.id());
        });
        suite.run("operations/interface", () -> {
            try {
                equal("interface", plain._get_interface_def(), null);
            } catch (org.omg.CORBA.INTF_REPOS | org.omg.CORBA.NO_IMPLEMENT none) {
                // There is no interface repository.
            }
        });
        suite.run("operations/component", () -> {
            Request request = implicit("_component", TCKind.tk_objref);
            request.invoke();
            if (request.env().exception() != null) throw request.env().exception();
            equal("component", request.return_value().extract_Object(), null);
        });
        suite.run("operations/equivalent", () -> {
            Target again = desk.plain();
            equal("equivalent", plain._is_equivalent(again), true);
            equal("hash", plain._hash(1000), again._hash(1000));
            equal("another", plain._is_equivalent(desk), false);
        });
        suite.run("locate/here", () -> equal("name", locating(plain).name(), "plain"));
        suite.run("locate/unknown", () -> {
            // JacORB's exception for UNKNOWN_OBJECT.
            String said = raises(org.omg.CORBA.UNKNOWN.class, () -> locating(desk.destroyed()).name()).getMessage();
            expect(said.contains("server does not know it"), said);
        });
    }

    /** The same object in an ORB that sends a LocateRequest before the first call. */
    private Target locating(org.omg.CORBA.Object target) throws Exception {
        java.util.Properties locates = new java.util.Properties();
        locates.put("jacorb.locate_on_bind", "on");
        Broker other = new Broker(options, locates);
        return TargetHelper.unchecked_narrow(other.orb.string_to_object(broker.orb.object_to_string(target)));
    }

    private Request implicit(String operation, TCKind kind) {
        Request request = plain._request(operation);
        request.set_return_type(broker.orb.get_primitive_tc(kind));
        return request;
    }

    private void adapters() {
        suite.run("locator/found", () -> equal("name", desk.located("one").name(), "one"));
        suite.run("locator/moved", () -> equal("name", desk.located("moved").name(), "plain"));
        suite.run("locator/gone", () -> raises(OBJECT_NOT_EXIST.class, () -> desk.located("gone").name()));
        suite.run("activator/found", () -> equal("name", desk.activated("two").name(), "two"));
        suite.run("activator/once", () -> {
            Target target = desk.activated("three");
            for (int i = 0; i < 3; ++i) target.name();
            equal("incarnations", desk.incarnations("three"), 1);
        });
        suite.run("activator/moved", () -> equal("name", desk.activated("moved").name(), "plain"));
        suite.run("activator/gone", () -> raises(OBJECT_NOT_EXIST.class, () -> desk.activated("gone").name()));
        suite.run("default/names", () -> {
            equal("name", desk.by_default("four").name(), "four");
            equal("name", desk.by_default("five").name(), "five");
        });
        suite.run("adapter/made", () -> equal("name", desk.adapted("six").name(), "six"));
        suite.run("adapter/destroyed", () -> raises(OBJECT_NOT_EXIST.class, () -> desk.destroyed().name()));
    }

    private void managers() {
        suite.run("manager/held", () -> {
            Request request = desk.held()._request("_get_name");
            request.set_return_type(broker.orb.get_primitive_tc(TCKind.tk_string));
            request.send_deferred();
            // Its reply would have come before this one, if the request had not been held.
            equal("generation", desk.generation(), 1);
            equal("answered", request.poll_response(), false);
            desk.release();
            request.get_response();
            if (request.env().exception() != null) throw request.env().exception();
            equal("name", request.return_value().extract_string(), "held");
        });
        suite.run("manager/discarding", () -> raises(TRANSIENT.class, () -> desk.discarded().name()));
    }

    /** `corbaloc:` with the host and port of a reference. */
    private org.omg.CORBA.Object byKey(String key) {
        org.jacorb.orb.ParsedIOR ior = ((org.jacorb.orb.Delegate) ((org.omg.CORBA.portable.ObjectImpl) plain)._get_delegate()).getParsedIOR();
        org.jacorb.orb.iiop.IIOPProfile profile = (org.jacorb.orb.iiop.IIOPProfile) ior.getEffectiveProfile();
        org.jacorb.orb.iiop.IIOPAddress address = (org.jacorb.orb.iiop.IIOPAddress) profile.getAddress();
        return broker.orb.string_to_object("corbaloc:iiop:1.2@" + address.getIP() + ":" + address.getPort() + "/" + key);
    }

    private void keys() {
        suite.run("key/plain", () -> equal("name", TargetHelper.narrow(byKey("Greeter")).name(), "plain"));
        suite.run("locate/forward", () -> equal("name", locating(byKey("Greeter")).name(), "plain"));
        suite.run("key/unknown", () -> raises(OBJECT_NOT_EXIST.class, () -> TargetHelper.unchecked_narrow(byKey("Nobody")).name()));
    }

    private Request halve(int whole) {
        Request request = plain._request("halve");
        request.add_named_in_arg("whole").insert_long(whole);
        request.add_named_inout_arg("text").insert_string("ab");
        request.add_named_out_arg("rest").type(broker.orb.get_primitive_tc(TCKind.tk_double));
        request.set_return_type(broker.orb.get_primitive_tc(TCKind.tk_long));
        request.exceptions().add(RefusedHelper.type());
        return request;
    }

    private static void checkHalved(Request request) throws Exception {
        if (request.env().exception() != null) throw request.env().exception();
        equal("result", request.return_value().extract_long(), 3);
        equal("text", request.arguments().item(1).value().extract_string(), "abab");
        equal("rest", request.arguments().item(2).value().extract_double(), 3.5);
    }

    private void dynamicRequests() {
        suite.run("dii/call", () -> {
            Request request = halve(7);
            request.invoke();
            checkHalved(request);
        });
        suite.run("dii/exception", () -> {
            Request request = halve(-1);
            request.invoke();
            Exception raised = request.env().exception();
            expect(raised instanceof org.omg.CORBA.UnknownUserException, "raised: " + raised);
            equal("why", RefusedHelper.extract(((org.omg.CORBA.UnknownUserException) raised).except).why, "negative");
        });
        suite.run("dii/oneway", () -> {
            Request request = plain._request("note");
            request.add_in_arg().insert_long(11);
            request.add_in_arg().insert_ulong(0);
            request.send_oneway();
            eventually("the note", () -> plain.noted() == 11);
        });
        suite.run("dii/deferred", () -> {
            Request[] requests = new Request[5];
            for (int i = 0; i < requests.length; ++i) {
                requests[i] = halve(7);
                requests[i].send_deferred();
            }
            for (Request request : requests) {
                request.get_response();
                checkHalved(request);
            }
        });
    }

    private void dynamicSkeletons() {
        suite.run("dsi/call", () -> {
            StringHolder text = new StringHolder("ab");
            DoubleHolder rest = new DoubleHolder();
            equal("result", desk.dynamically().halve(7, text, rest), 3);
            equal("text", text.value, "abab");
            equal("rest", rest.value, 3.5);
        });
        suite.run("dsi/exception", () -> equal("why", raises(Refused.class,
            () -> desk.dynamically().halve(-1, new StringHolder(""), new DoubleHolder())).why, "negative"));
        suite.run("dsi/oneway", () -> {
            Target target = desk.dynamically();
            target.note(12, 0);
            eventually("the note", () -> target.noted() == 12);
        });
        suite.run("dsi/operations", () -> {
            equal("a target", desk.dynamically()._is_a(TargetHelper.id()), true);
            equal("gone", desk.dynamically()._non_existent(), false);
        });
    }

    private Target scoped(Target target, short scope) throws Exception {
        return TargetHelper.unchecked_narrow(Policies.scope(broker.orb, target, scope));
    }

    private void oneways() {
        suite.run("scope/server", () -> {
            scoped(plain, SYNC_WITH_SERVER.value).note(21, 0);
            eventually("the note", () -> plain.noted() == 21);
            raises(OBJECT_NOT_EXIST.class, () -> scoped(desk.destroyed(), SYNC_WITH_SERVER.value).note(1, 0));
        });
        suite.run("scope/target", () -> {
            scoped(plain, SYNC_WITH_TARGET.value).note(22, 100);
            equal("noted", plain.noted(), 22);
            raises(OBJECT_NOT_EXIST.class, () -> scoped(desk.destroyed(), SYNC_WITH_TARGET.value).note(1, 0));
        });
    }

    private void contexts() {
        suite.run("context/sent", () -> {
            Contexts.say("said by an interceptor");
            equal("heard", plain.heard(), "said by an interceptor");
            equal("heard without", plain.heard(), "");
        });
        suite.run("context/returned", () -> {
            plain.heard();
            equal("returned", Contexts.returned(), "answered");
        });
    }

    /** The server restarts at the same endpoint while the client keeps references. */
    private void restart() {
        suite.run("restart/persistent", () -> {
            Target kept = desk.persistent();
            equal("before", kept.name(), "persistent");
            desk.restart();
            eventually("the restart", () -> {
                try {
                    return desk.generation() == 2;
                } catch (org.omg.CORBA.COMM_FAILURE | TRANSIENT | OBJECT_NOT_EXIST | org.omg.CORBA.OBJ_ADAPTER notYet) {
                    return false;
                }
            });
            equal("after", kept.name(), "persistent");
        });
        suite.run("restart/transient", () -> raises(OBJECT_NOT_EXIST.class, plain::name));
    }
}
