package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import Anything.*;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.omg.CORBA.Any;
import org.omg.CORBA.AnyHolder;
import org.omg.CORBA.CharHolder;
import org.omg.CORBA.DATA_CONVERSION;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.Request;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.CORBA.TypeCodeHolder;
import org.omg.CORBA.UserException;
import org.omg.DynamicAny.DynAnyFactoryHelper;
import org.omg.Messaging.ExceptionHolder;

/** Serves and calls tests/interop/idl/anything.idl. */
final class AnyThing {
    private final Broker broker;
    private final Samples samples;
    private final Dynamic dynamic;

    private AnyThing(Options options) throws Exception {
        broker = new Broker(options);
        samples = new Samples(broker.orb);
        dynamic = new Dynamic(DynAnyFactoryHelper.narrow(broker.orb.resolve_initial_references("DynAnyFactory")));
    }

    static int serve(Options options) throws Exception {
        AnyThing all = new AnyThing(options);
        return all.broker.serve(all.broker.activate(all.new DeskImpl(options.codeset.equals("UTF8") ? "UTF-8" : options.codeset)));
    }

    static int call(Options options) throws Exception {
        AnyThing all = new AnyThing(options);
        Suite suite = new Suite(options.only);
        Desk desk = DeskHelper.narrow(all.broker.orb.string_to_object(options.reference));
        if (options.texts.isEmpty()) {
            all.values(suite, desk);
            texts(suite, desk, options.euro);
            wideTexts(suite, desk);
            all.asynchronous(suite, desk.the_halver());
        } else {
            said(suite, desk, options.texts, options.beyond);
        }
        suite.run("shutdown", desk::shutdown);
        return suite.verdict();
    }

    /** Fails unless the value is the sample of that name, by its type in Java. */
    private void check(String what, String name, Any value) throws Exception {
        Samples.Sample sample = samples.all.get(name);
        if (sample == null) throw new Suite.Failure("no sample " + name);
        // There are no dynamic values; members are compared in their form in the program.
        if (name.equals("value")) equal(what, Show.show(sample.extracted(value).extract_Value()), Show.show(sample.make().extract_Value()));
        else equal(what, dynamic.show(sample.extracted(value)), dynamic.show(sample.make()));
    }

    private static short[] units(String text) {
        short[] made = new short[text.length()];
        for (int i = 0; i < made.length; ++i) made[i] = (short) text.charAt(i);
        return made;
    }

    private static String text(short[] units) {
        StringBuilder made = new StringBuilder();
        for (short unit : units) made.append((char) (unit & 0xffff));
        return made.toString();
    }

    private static final class HalverImpl extends HalverPOA {
        @Override public int half(int whole, IntHolder rest) throws Mismatch {
            if (whole % 2 != 0) throw new Mismatch("odd");
            rest.value = whole - whole / 2;
            return whole / 2;
        }

        @Override public void refuse(int minor) {
            throw new DATA_CONVERSION(minor, org.omg.CORBA.CompletionStatus.COMPLETED_NO);
        }
    }

    private final class DeskImpl extends DeskPOA {
        private final Halver halver = HalverHelper.narrow(broker.activate(new HalverImpl()));
        private final java.nio.charset.CharsetEncoder own;

        DeskImpl(String codeset) {
            own = java.nio.charset.Charset.forName(codeset).newEncoder();
        }

        @Override public Any exchange(String name, Any value) throws Mismatch {
            try {
                check("value", name, value);
                return samples.all.get(name).make();
            } catch (Throwable error) {
                throw new Mismatch(Suite.describe(error));
            }
        }

        @Override public Any pass(Any a, AnyHolder b, AnyHolder c) {
            c.value = b.value;
            b.value = a;
            return a;
        }

        @Override public String show(Any value) {
            try {
                return dynamic.show(value);
            } catch (UserException error) {
                throw new org.omg.CORBA.INTERNAL(error.toString());
            }
        }

        @Override public Any rebuild(Any value) {
            try {
                return dynamic.rebuild(value);
            } catch (UserException error) {
                throw new org.omg.CORBA.INTERNAL(error.toString());
            }
        }

        @Override public void fail(Any what) throws Broke {
            throw new Broke("as you asked", what);
        }

        @Override public TypeCode exchange_type(String name, TypeCode type) throws Mismatch {
            try {
                TypeCode own = samples.all.get(name).make().type();
                expect(own.equivalent(type), "not equivalent");
                equal("type", Dynamic.showType(type), Dynamic.showType(own));
                return own;
            } catch (Throwable error) {
                throw new Mismatch(Suite.describe(error));
            }
        }

        @Override public TypeCode pass_type(TypeCode a, TypeCodeHolder b, TypeCodeHolder c) {
            c.value = b.value;
            b.value = a;
            return a;
        }

        @Override public String show_type(TypeCode type) {
            try {
                return Dynamic.showType(type);
            } catch (UserException error) {
                throw new org.omg.CORBA.INTERNAL(error.toString());
            }
        }

        @Override public String pass_string(String a, StringHolder b, StringHolder c) {
            c.value = b.value;
            b.value = a;
            return a;
        }

        @Override public String said(short[] points) {
            String text = text(points);
            // An unencodable text raises the same exception as in an ORB.
            if (!own.canEncode(text)) throw new DATA_CONVERSION(1, org.omg.CORBA.CompletionStatus.COMPLETED_NO);
            return text;
        }

        @Override public short[] heard(String text) { return units(text); }

        @Override public String pass_wstring(String a, StringHolder b, StringHolder c) {
            return pass_string(a, b, c);
        }

        @Override public char pass_wchar(char a, CharHolder b, CharHolder c) {
            c.value = b.value;
            b.value = a;
            return a;
        }

        @Override public String[] pass_texts(String[] texts) { return texts; }
        @Override public WidePair pass_pair(WidePair pair) { return pair; }
        @Override public WideChoice pass_choice(WideChoice choice) { return choice; }
        @Override public short[] wide_units(String text) { return units(text); }
        @Override public String wide_text(short[] points) { return text(points); }
        @Override public Halver the_halver() { return halver; }

        @Override public void shutdown() {
            broker.shutDown();
        }
    }

    private Any other() {
        Any any = broker.orb.create_any();
        any.insert_string("other");
        return any;
    }

    /** Every sample: as its type in Java, assembled from parts at run time, and its type alone. */
    private void values(Suite suite, Desk desk) {
        samples.all.forEach((name, sample) -> {
            suite.run("any/" + name, () -> {
                check("exchanged", name, desk.exchange(name, sample.make()));
                AnyHolder b = new AnyHolder(other());
                AnyHolder c = new AnyHolder();
                check("result", name, desk.pass(sample.make(), b, c));
                check("b", name, b.value);
                equal("c", dynamic.show(c.value), dynamic.show(other()));
            });
            suite.run("dynany/" + name, () -> {
                Any made = dynamic.rebuild(sample.make());
                check("exchanged", name, desk.exchange(name, made));
                equal("shown", desk.show(made), dynamic.show(sample.make()));
                check("rebuilt", name, desk.rebuild(made));
            });
            suite.run("typecode/" + name, () -> typeCode(desk, name, sample.make().type()));
        });
        suite.run("exception/any", () -> {
            Broke broke = raises(Broke.class, () -> desk.fail(samples.ofPoint()));
            equal("why", broke.why, "as you asked");
            check("what", "point", broke.what);
        });
    }

    private void typeCode(Desk desk, String name, TypeCode type) throws Exception {
        TypeCode back = desk.exchange_type(name, type);
        expect(back.equivalent(type), "not equivalent");
        equal("exchanged", Dynamic.showType(back), Dynamic.showType(type));
        equal("shown", desk.show_type(type), Dynamic.showType(type));
        TypeCodeHolder b = new TypeCodeHolder(broker.orb.get_primitive_tc(TCKind.tk_long));
        TypeCodeHolder c = new TypeCodeHolder();
        equal("result", Dynamic.showType(desk.pass_type(type, b, c)), Dynamic.showType(type));
        equal("b", Dynamic.showType(b.value), Dynamic.showType(type));
        equal("c", c.value.kind(), TCKind.tk_long);
    }

    private static void narrowText(Desk desk, String text) throws Exception {
        equal("heard", text(desk.heard(text)), text);
        equal("said", desk.said(units(text)), text);
        StringHolder b = new StringHolder("other");
        StringHolder c = new StringHolder();
        equal("result", desk.pass_string(text, b, c), text);
        equal("b", b.value, text);
        equal("c", c.value, "other");
    }

    private static void texts(Suite suite, Desk desk, boolean euro) {
        suite.run("string/empty", () -> narrowText(desk, ""));
        suite.run("string/ascii", () -> narrowText(desk, "text"));
        suite.run("string/latin1", () -> narrowText(desk, "caf\u00e9\u00ff"));
        suite.run("string/euro", () -> {
            if (euro) narrowText(desk, Samples.EURO);
            else raises(DATA_CONVERSION.class, () -> desk.said(units("\u20ac")));
        });
    }

    /** Only texts: this one, and another that cannot be encoded. */
    private static void said(Suite suite, Desk desk, String sample, String beyond) {
        suite.run("text/ascii", () -> narrowText(desk, "text"));
        suite.run("text/narrow", () -> narrowText(desk, sample));
        suite.run("text/wide", () -> wideText(desk, sample));
        suite.run("text/wchar", () -> {
            char letter = sample.charAt(0);
            CharHolder b = new CharHolder('b');
            CharHolder c = new CharHolder();
            expect(desk.pass_wchar(letter, b, c) == letter && b.value == letter && c.value == 'b', "came back otherwise");
        });
        if (beyond.isEmpty()) return;
        suite.run("text/beyond", () -> {
            raises(DATA_CONVERSION.class, () -> desk.heard(beyond));
            raises(DATA_CONVERSION.class, () -> desk.said(units(beyond)));
        });
    }

    private static void wideText(Desk desk, String text) throws Exception {
        equal("units", text(desk.wide_units(text)), text);
        equal("text", desk.wide_text(units(text)), text);
        StringHolder b = new StringHolder("other");
        StringHolder c = new StringHolder();
        equal("result", desk.pass_wstring(text, b, c), text);
        equal("b", b.value, text);
        equal("c", c.value, "other");
    }

    private static void wideTexts(Suite suite, Desk desk) {
        suite.run("wide/empty", () -> wideText(desk, ""));
        suite.run("wide/ascii", () -> wideText(desk, "text"));
        suite.run("wide/euro", () -> wideText(desk, "5 \u20ac\ufeff\ufffd"));
        suite.run("wide/pair", () -> wideText(desk, "\ud83d\ude00")); // two code units, one character
        suite.run("wide/wchar", () -> {
            CharHolder b = new CharHolder('b');
            CharHolder c = new CharHolder();
            equal("result", desk.pass_wchar('\u20ac', b, c), '\u20ac');
            expect(b.value == '\u20ac' && c.value == 'b', "other characters");
        });
        suite.run("wide/sequence", () -> {
            String[] texts = {"one", "", Samples.EURO};
            expect(Arrays.equals(desk.pass_texts(texts), texts), "other texts");
        });
        suite.run("wide/struct", () -> {
            WidePair back = desk.pass_pair(new WidePair("wide", '\u00e9'));
            expect(back.text.equals("wide") && back.letter == '\u00e9', "another pair");
        });
        suite.run("wide/union", () -> {
            WideChoice choice = new WideChoice();
            choice.letter('\u20ac');
            WideChoice back = desk.pass_choice(choice);
            expect(back.discriminator() == choice.discriminator() && back.letter() == '\u20ac', "another choice");
        });
    }

    /** Completes with the outcome. */
    private static final class Teller extends AMI_HalverHandlerPOA {
        private final CompletableFuture<String> told = new CompletableFuture<>();

        @Override public void half(int result, int rest) { told.complete(result + " and " + rest); }
        @Override public void refuse() { told.complete("not refused"); }
        @Override public void half_excep(ExceptionHolder holder) { tell(holder); }
        @Override public void refuse_excep(ExceptionHolder holder) { tell(holder); }

        private void tell(ExceptionHolder holder) {
            try {
                holder.raise_exception();
                told.complete("nothing raised");
            } catch (Mismatch error) {
                told.complete("Mismatch " + error.what);
            } catch (org.omg.CORBA.SystemException error) {
                told.complete(error.getClass().getSimpleName() + " " + error.minor);
            } catch (Exception error) {
                told.complete(error.toString());
            }
        }
    }

    private interface Send {
        void send(AMI_HalverHandler handler);
    }

    private String told(Send send) throws Exception {
        Teller teller = new Teller();
        send.send(AMI_HalverHandlerHelper.narrow(broker.activate(teller)));
        return teller.told.get(Broker.TIME_LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** JacORB's stubs have no pollers: those cases are deferred calls of the dynamic interface. */
    private void asynchronous(Suite suite, Halver halver) {
        _HalverStub stub = (_HalverStub) halver;
        suite.run("async/result", () -> equal("told", told(handler -> stub.sendc_half(handler, -12)), "-6 and -6"));
        suite.run("async/exception", () -> equal("told", told(handler -> stub.sendc_half(handler, 5)), "Mismatch odd"));
        suite.run("async/system", () -> equal("told", told(handler -> stub.sendc_refuse(handler, 9)), "DATA_CONVERSION 9"));
        suite.run("async/poll", () -> {
            Request[] requests = new Request[20];
            for (int i = 0; i < requests.length; ++i) {
                requests[i] = half(halver, 2 * i);
                requests[i].send_deferred();
            }
            for (int i = 0; i < requests.length; ++i) {
                requests[i].get_response();
                if (requests[i].env().exception() != null) throw requests[i].env().exception();
                equal("half", requests[i].return_value().extract_long(), i);
                equal("rest", requests[i].arguments().item(1).value().extract_long(), i);
            }
        });
        suite.run("async/poll-exception", () -> {
            Request request = half(halver, 7);
            request.exceptions().add(MismatchHelper.type());
            request.send_deferred();
            request.get_response();
            Exception raised = request.env().exception();
            expect(raised instanceof org.omg.CORBA.UnknownUserException, "raised: " + raised);
            equal("what", MismatchHelper.extract(((org.omg.CORBA.UnknownUserException) raised).except).what, "odd");
        });
    }

    private Request half(Halver halver, int whole) {
        Request request = halver._request("half");
        request.add_named_in_arg("whole").insert_long(whole);
        request.add_named_out_arg("rest").type(broker.orb.get_primitive_tc(TCKind.tk_long));
        request.set_return_type(broker.orb.get_primitive_tc(TCKind.tk_long));
        return request;
    }
}
