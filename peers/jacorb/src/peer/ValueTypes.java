package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import Values.*;
import java.io.Serializable;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.omg.CORBA.portable.ValueFactory;

/** Serves and calls tests/interop/idl/values.idl; clients have the types of more_values.idl too. */
final class ValueTypes {
    private ValueTypes() {}

    static final class NodeImpl extends Node {
        private static final long serialVersionUID = 1L;

        NodeImpl() {
            others = new Node[0];
        }
    }

    static final class BaseImpl extends Base {
        private static final long serialVersionUID = 1L;
    }

    static final class DerivedImpl extends Derived {
        private static final long serialVersionUID = 1L;
    }

    static final class SpecialImpl extends Special {
        private static final long serialVersionUID = 1L;

        SpecialImpl() {
            forest = new Node[0];
        }
    }

    static final class VerySpecialImpl extends VerySpecial {
        private static final long serialVersionUID = 1L;

        VerySpecialImpl() {
            forest = new Node[0];
        }
    }

    static final class Tale extends Story {
        private static final long serialVersionUID = 1L;

        Tale() {}

        Tale(String title, int pages) {
            this.title = title;
            this.pages = pages;
        }

        @Override public String describe(int detail) {
            return title + " of " + pages + " pages, " + detail;
        }
    }

    private static void factory(Broker broker, String id, Supplier<? extends Serializable> make) {
        ValueFactory factory = input -> input.read_value(make.get());
        ((org.omg.CORBA_2_3.ORB) broker.orb).register_value_factory(id, factory);
    }

    private static void factories(Broker broker, boolean all) {
        factory(broker, "IDL:Values/Node:1.0", NodeImpl::new);
        factory(broker, "IDL:Values/Base:1.0", BaseImpl::new);
        factory(broker, "IDL:Values/Derived:1.0", DerivedImpl::new);
        factory(broker, "IDL:Values/Story:1.0", Tale::new);
        if (!all) return;
        factory(broker, "IDL:Values/Special:1.0", SpecialImpl::new);
        factory(broker, "IDL:Values/VerySpecial:1.0", VerySpecialImpl::new);
    }

    static Node node(String name, double weight) {
        Node made = new NodeImpl();
        made.name = name;
        made.weight = weight;
        return made;
    }

    private static BaseImpl base(int x) {
        BaseImpl made = new BaseImpl();
        made.x = x;
        return made;
    }

    /** The text of a graph: depth first, each node with its number the first time, and the number alone later. */
    static String look(Node node) {
        StringBuilder out = new StringBuilder();
        look(node, new IdentityHashMap<>(), out);
        return out.toString();
    }

    private static void look(Node node, Map<Node, Integer> seen, StringBuilder out) {
        if (node == null) {
            out.append('-');
            return;
        }
        Integer known = seen.get(node);
        if (known != null) {
            out.append('#').append(known);
            return;
        }
        int number = seen.size();
        seen.put(node, number);
        out.append(number).append('=').append(node.name).append('*');
        if (node.weight == Math.rint(node.weight)) out.append((long) node.weight);
        else out.append(node.weight);
        out.append('(');
        look(node.left, seen, out);
        for (Node other : node.others) {
            out.append(',');
            look(other, seen, out);
        }
        out.append(')');
    }

    private static final class ThingImpl extends ThingPOA {
        @Override public String describe(int detail) {
            return "an object, " + detail;
        }
    }

    private static final class ExchangeImpl extends ExchangePOA {
        private final Broker broker;
        private final Thing thing;

        ExchangeImpl(Broker broker) {
            this.broker = broker;
            thing = ThingHelper.narrow(broker.activate(new ThingImpl()));
        }

        @Override public Pair echo_pair(Pair p) { return p; }
        @Override public Base echo_base(Base b) { return b; }

        @Override public Base echo_bases(Base b, BaseHolder again) {
            Base before = again.value;
            again.value = b;
            return before;
        }

        @Override public String echo_text(String t, TextHolder again) {
            again.value = t;
            return t;
        }

        @Override public short[] echo_numbers(short[] n) { return n; }
        @Override public Pair echo_pair_box(Pair p) { return p; }
        @Override public Describable echo_describable(Describable d) { return d; }
        @Override public Serializable echo_value(Serializable v) { return v; }
        @Override public String look(Node n) { return ValueTypes.look(n); }
        @Override public String ask(Describable d, int detail) { return d == null ? "nothing" : d.describe(detail); }
        @Override public Describable an_object() { return thing; }

        @Override public void refuse(Base b) throws Refused {
            throw new Refused(b);
        }

        @Override public int truncate(Base b, Node n, NodeHolder back) {
            back.value = n;
            return b == null ? 0 : b.x;
        }

        @Override public void shutdown() {
            broker.shutDown();
        }
    }

    static int serve(Options options) throws Exception {
        Broker broker = new Broker(options);
        factories(broker, false);
        return broker.serve(broker.activate(new ExchangeImpl(broker)));
    }

    /** Two nodes that share a third, which leads back to the first. */
    private static Pair graph() {
        Node top = node("top", 0.5);
        Node low = node("low", -2);
        Node shared = node("shared", 3);
        top.left = low;
        top.others = new Node[] {shared, null, shared};
        shared.left = top;
        low.others = new Node[] {shared};
        return new Pair(top, low);
    }

    static int call(Options options) throws Exception {
        Broker broker = new Broker(options);
        factories(broker, true);
        Suite suite = new Suite(options.only);
        Exchange server = ExchangeHelper.narrow(broker.orb.string_to_object(options.reference));
        graphs(suite, server);
        bases(suite, server);
        boxes(suite, server);
        suite.run("base/any", () -> equal("back", look((Node) server.echo_value(node("any", 1))), "0=any*1(-)"));
        describables(suite, server);
        suite.run("shutdown", server::shutdown);
        return suite.verdict();
    }

    private static void graphs(Suite suite, Exchange server) {
        suite.run("graph/nil", () -> equal("seen", server.look(null), "-"));
        suite.run("graph/look", () -> equal("seen", server.look(graph().first), look(graph().first)));
        suite.run("graph/echo", () -> {
            Pair back = server.echo_pair(graph());
            equal("first", look(back.first), look(graph().first));
            equal("second", look(back.second), look(graph().second));
            expect(back.first.left == back.second, "not shared");
        });
        suite.run("graph/ring", () -> {
            Node first = node("0", 0);
            Node last = first;
            for (int i = 1; i < 200; ++i) {
                last.left = node(Integer.toString(i), i);
                last = last.left;
            }
            last.left = first;
            equal("seen", server.look(first), look(first));
        });
    }

    private static void bases(Suite suite, Exchange server) {
        suite.run("inheritance/derived", () -> {
            DerivedImpl derived = new DerivedImpl();
            derived.x = -4;
            derived.flag = 9;
            derived.y = 1L << 40;
            derived.tree = node("in", 1.25);
            Derived seen = (Derived) server.echo_base(derived);
            expect(seen.x == -4 && seen.flag == 9 && seen.y == 1L << 40, "other members");
            equal("tree", look(seen.tree), "0=in*1.25(-)");
        });
        suite.run("inheritance/inout", () -> {
            BaseHolder again = new BaseHolder(base(2));
            Base back = server.echo_bases(base(1), again);
            expect(back.x == 2 && again.value.x == 1, "other values");
            back = server.echo_bases(base(1), again);
            expect(back.x == 1 && again.value.x == 1, "other values");
        });
        suite.run("inheritance/exception", () -> equal("x", raises(Refused.class, () -> server.refuse(base(77))).what.x, 77));
        suite.run("truncation/base", () -> {
            SpecialImpl special = new SpecialImpl();
            special.x = 5;
            special.what = "special";
            special.tree = node("tree", 1);
            special.forest = new Node[] {special.tree, node("bush", 2)};
            Base back = server.echo_base(special);
            expect(back.x == 5 && !(back instanceof Special), "not truncated");
        });
        suite.run("truncation/twice", () -> {
            VerySpecialImpl special = new VerySpecialImpl();
            special.more = 2.5;
            special.x = 6;
            special.what = "very special";
            special.tree = node("oak", 1);
            Base back = server.echo_base(special);
            expect(back.x == 6 && !(back instanceof Special), "not truncated");
        });
    }

    private static void boxes(Suite suite, Exchange server) {
        suite.run("box/text", () -> {
            TextHolder again = new TextHolder();
            String back = server.echo_text("boxed", again);
            equal("text", back, "boxed");
            expect(back == again.value, "not shared");
        });
        suite.run("box/sequence", () -> {
            short[] back = server.echo_numbers(new short[] {-1, 0, 1});
            expect(Arrays.equals(back, new short[] {-1, 0, 1}), "other numbers");
        });
        suite.run("box/struct", () -> equal("first", look(server.echo_pair_box(graph()).first), look(graph().first)));
    }

    private static void describables(Suite suite, Exchange server) {
        suite.run("abstract/value", () -> {
            equal("said", server.ask(new Tale("tale", 7), 3), "tale of 7 pages, 3");
            Describable back = server.echo_describable(new Tale("tale", 7));
            expect(back instanceof Story, "no value came back");
            equal("title", ((Story) back).title, "tale");
        });
        suite.run("abstract/object", () -> {
            Describable object = server.an_object();
            equal("said", object.describe(4), "an object, 4");
            Describable back = server.echo_describable(object);
            equal("said", back.describe(5), "an object, 5");
            equal("said to the server", server.ask(back, 6), "an object, 6");
        });
        suite.run("abstract/nil", () -> equal("nil", server.echo_describable(null), null));
    }
}
