package peer;

import Anything.*;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.Map;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.portable.ValueFactory;

/** The samples of tests/interop/idl/anything.idl by their names: creation of each, and its extraction from an any and insertion into another. */
final class Samples {
    static final String EURO = "5 \u20ac";

    /** One value, by its type in the program. */
    interface Sample {
        Any make() throws Exception;

        Any extracted(Any from) throws Exception;
    }

    private interface Insert<T> {
        void into(Any any, T value) throws Exception;
    }

    private interface Extract<T> {
        T from(Any any) throws Exception;
    }

    private interface Make<T> {
        T make() throws Exception;
    }

    static final class NodeImpl extends Node {
        private static final long serialVersionUID = 1L;
    }

    final Map<String, Sample> all = new LinkedHashMap<>();
    private final ORB orb;

    Samples(ORB orb) {
        this.orb = orb;
        ValueFactory nodes = input -> input.read_value(new NodeImpl());
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(NodeHelper.id(), nodes);
        simple();
        constructed();
        String[] texts = {EURO};
        add("wchar", () -> '\u20ac', Any::insert_wchar, Any::extract_wchar);
        add("wstring", () -> texts[0], Any::insert_wstring, Any::extract_wstring);
        add("value", Samples::nodes, NodeHelper::insert, NodeHelper::extract);
        add("value-box", () -> "boxed", TextHelper::insert, TextHelper::extract);
    }

    private <T> void add(String name, Make<T> make, Insert<T> insert, Extract<T> extract) {
        all.put(name, new Sample() {
            @Override public Any make() throws Exception {
                return inserted(make.make());
            }

            @Override public Any extracted(Any from) throws Exception {
                return inserted(extract.from(from));
            }

            private Any inserted(T value) throws Exception {
                Any any = orb.create_any();
                insert.into(any, value);
                return any;
            }
        });
    }

    private void simple() {
        add("null", () -> 0, (any, nothing) -> { }, any -> any.type().kind() == TCKind.tk_null ? 0 : null);
        add("short", () -> (short) -2, Any::insert_short, Any::extract_short);
        add("ulonglong", () -> Long.parseUnsignedLong("18000000000000000000"), Any::insert_ulonglong, Any::extract_ulonglong);
        add("float", () -> 0.5f, Any::insert_float, Any::extract_float);
        add("double", () -> -1e100, Any::insert_double, Any::extract_double);
        add("boolean", () -> true, Any::insert_boolean, Any::extract_boolean);
        add("octet", () -> (byte) 254, Any::insert_octet, Any::extract_octet);
        add("char", () -> 'z', Any::insert_char, Any::extract_char);
        add("string", () -> "coffee", Any::insert_string, Any::extract_string);
        add("fixed", () -> new BigDecimal("-1.25"), (any, value) -> any.insert_fixed(value, orb.create_fixed_tc((short) 9, (short) 2)),
            Any::extract_fixed);
        add("colour", () -> Colour.green, ColourHelper::insert, ColourHelper::extract);
        add("typecode", TreeHelper::type, Any::insert_TypeCode, Any::extract_TypeCode);
        add("nothing-there", () -> (org.omg.CORBA.Object) null,
            (any, nil) -> any.insert_Object(nil, orb.get_primitive_tc(TCKind.tk_objref)), Any::extract_Object);
    }

    private void constructed() {
        add("point", Samples::point, PointHelper::insert, PointHelper::extract);
        add("points", () -> new Point[] {new Point((short) 1, 0.5), new Point((short) 2, -0.5)}, PointsHelper::insert, PointsHelper::extract);
        add("matrix", () -> new int[][] {{1, 2, 3}, {-4, -5, -6}}, MatrixHelper::insert, MatrixHelper::extract);
        add("choice", () -> choice("blue"), ChoiceHelper::insert, ChoiceHelper::extract);
        add("letter", () -> {
            Letter made = new Letter();
            made.word("a word");
            return made;
        }, LetterHelper::insert, LetterHelper::extract);
        add("letter-default", () -> {
            Letter made = new Letter();
            made.rest('q', (byte) 9);
            return made;
        }, LetterHelper::insert, LetterHelper::extract);
        add("flag-none", () -> {
            Flag made = new Flag();
            made.__default();
            return made;
        }, FlagHelper::insert, FlagHelper::extract);
        add("tree", Samples::tree, TreeHelper::insert, TreeHelper::extract);
        add("parcel", () -> new Parcel((byte) 7, ofPoint(), TreeHelper.type(), choice("in a parcel")), ParcelHelper::insert,
            ParcelHelper::extract);
        add("any", this::ofPoint, Any::insert_any, Any::extract_any);
        add("anys", () -> {
            Any[] made = {orb.create_any(), ofPoint(), orb.create_any()};
            made[0].insert_short((short) 3);
            TreeHelper.insert(made[2], tree());
            return made;
        }, AnysHelper::insert, AnysHelper::extract);
        add("broke", () -> new Broke("glass", ofPoint()), BrokeHelper::insert, BrokeHelper::extract);
    }

    static Point point() {
        return new Point((short) -1, 2.5);
    }

    Any ofPoint() {
        Any any = orb.create_any();
        PointHelper.insert(any, point());
        return any;
    }

    private static Choice choice(String text) {
        Choice made = new Choice();
        made.text(Colour.blue, text);
        return made;
    }

    private static Tree tree() {
        Tree leaf = new Tree(-4, new Tree[0]);
        return new Tree(1, new Tree[] {new Tree(2, new Tree[0]), new Tree(3, new Tree[] {leaf})});
    }

    private static Node nodes() {
        Node first = new NodeImpl();
        Node last = new NodeImpl();
        first.value = 1;
        first.next = last;
        last.value = 2;
        return first;
    }
}
