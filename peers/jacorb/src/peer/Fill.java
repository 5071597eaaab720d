package peer;

import Interop.Choice;
import Interop.Colour;
import Interop.Kinds;
import Interop.Tree;
import Interop.Wish;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import org.omg.CORBA.TypeCode;

/** The generator of values that all sides of the interoperability suite share; tests/interop/README.md specifies it. */
final class Fill {
    private static final int UNBOUNDED = 0;

    private final int seed;
    private long state;
    private long count;

    Fill(int seed, int role) {
        this.seed = seed;
        state = (seed & 0xffffffffL) << 32 | role;
        count = role * 16L;
    }

    /** The next value of this shape. */
    Object make(Shape shape) {
        try {
            return made(shape);
        } catch (ReflectiveOperationException | org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }

    @SuppressWarnings("unchecked")
    <T> T make(Class<T> kind) {
        return (T) make(Shape.of(kind));
    }

    private Object made(Shape shape) throws ReflectiveOperationException, org.omg.CORBA.UserException {
        if (shape.kind == Choice.class) return choice();
        if (shape.kind == Wish.class) return wish();
        if (shape.kind == Tree.class) return tree();
        if (shape.kind == Kinds.class) return kinds();
        TypeCode type = shape.type();
        switch (type.kind().value()) {
            case org.omg.CORBA.TCKind._tk_short: return (short) integer(16, true);
            case org.omg.CORBA.TCKind._tk_ushort: return (short) integer(16, false);
            case org.omg.CORBA.TCKind._tk_long: return (int) integer(32, true);
            case org.omg.CORBA.TCKind._tk_ulong: return (int) integer(32, false);
            case org.omg.CORBA.TCKind._tk_longlong: return integer(64, true);
            case org.omg.CORBA.TCKind._tk_ulonglong: return integer(64, false);
            case org.omg.CORBA.TCKind._tk_float: return floating();
            case org.omg.CORBA.TCKind._tk_double: return real();
            case org.omg.CORBA.TCKind._tk_boolean: return pick(0, 1, 2, 0, 2) != 0;
            case org.omg.CORBA.TCKind._tk_char: return (char) octet();
            case org.omg.CORBA.TCKind._tk_octet: return (byte) octet();
            case org.omg.CORBA.TCKind._tk_string: return text(type.length());
            case org.omg.CORBA.TCKind._tk_enum: return enumeration(shape.kind, type.member_count());
            case org.omg.CORBA.TCKind._tk_sequence: return items(shape, length(type.length()));
            case org.omg.CORBA.TCKind._tk_array: return items(shape, type.length());
            case org.omg.CORBA.TCKind._tk_struct: case org.omg.CORBA.TCKind._tk_except: {
                Object made = shape.kind.getConstructor().newInstance();
                for (int i = 0; i < type.member_count(); ++i) shape.field(i).set(made, made(shape.member(i)));
                return made;
            }
            default: throw new IllegalArgumentException("nothing is made of " + shape.kind);
        }
    }

    private long next() {
        state += 0x9e3779b97f4a7c15L;
        long z = state;
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /** One of the plain values (counted: `from + count % cycle`), or a random one modulo `range` (0: any). */
    private long pick(long least, long most, long cycle, long from, long range) {
        if (seed == 0) return least;
        if (seed == 1) return most;
        if (seed == 2) return from + count++ % cycle;
        return range == 0 ? next() : Long.remainderUnsigned(next(), range);
    }

    private long integer(int bits, boolean signed) {
        long least = signed ? -1L << bits - 1 : 0;
        long most = signed ? ~least : -1L >>> 64 - bits;
        if (seed == 0) return least;
        if (seed == 1) return most;
        if (seed == 2) return count++;
        switch ((int) next() & 15) {
            case 0: return least;
            case 1: return most;
            case 2: return 0;
            case 3: return 1;
            case 4: return -1;
            default: return next();
        }
    }

    private int octet() {
        return (int) pick(0, 0xff, 26, 'A', 0) & 0xff;
    }

    private float floating() {
        if (seed == 0) return -Float.MAX_VALUE;
        if (seed == 1) return Float.MAX_VALUE;
        if (seed == 2) return count++ + 0.5f;
        switch ((int) next() & 15) {
            case 0: return -0.0f;
            case 1: return Float.POSITIVE_INFINITY;
            case 2: return Float.NEGATIVE_INFINITY;
            case 3: return Float.MIN_VALUE;
            case 4: return Float.MIN_NORMAL;
            default:
        }
        int bits = (int) next();
        if ((bits & 0x7f800000) == 0x7f800000) bits &= ~0x40000000;
        return Float.intBitsToFloat(bits);
    }

    private double real() {
        if (seed == 0) return -Double.MAX_VALUE;
        if (seed == 1) return Double.MAX_VALUE;
        if (seed == 2) return count++ + 0.5;
        switch ((int) next() & 15) {
            case 0: return -0.0;
            case 1: return Double.POSITIVE_INFINITY;
            case 2: return Double.NEGATIVE_INFINITY;
            case 3: return Double.MIN_VALUE;
            case 4: return Double.MIN_NORMAL;
            default:
        }
        long bits = next();
        if ((bits & 0x7ff0000000000000L) == 0x7ff0000000000000L) bits &= ~0x4000000000000000L;
        return Double.longBitsToDouble(bits);
    }

    String text(int bound) {
        long most = bound == UNBOUNDED ? 40 : bound;
        long length = seed == 2 ? Math.min(count++ % 5 + 3, most) : pick(0, most, 1, 0, most + 1);
        StringBuilder made = new StringBuilder();
        for (long i = 0; i < length; ++i) {
            long c = seed > 2 ? Long.remainderUnsigned(next(), 255) + 1 : pick(0, 0xff, 26, 'a', 0);
            made.append((char) c);
        }
        return made.toString();
    }

    private Object enumeration(Class<?> kind, int members) throws ReflectiveOperationException {
        int chosen = (int) pick(0, members - 1, members, 0, members);
        return kind.getMethod("from_int", int.class).invoke(null, chosen);
    }

    private int length(int bound) {
        int most = bound == UNBOUNDED ? 3 : bound;
        if (seed == 0) return 0;
        if (seed == 1) return most;
        if (seed == 2) return Math.min(2, most);
        long r = next();
        int length = Long.remainderUnsigned(r, 16) == 15 ? 257 : (int) Long.remainderUnsigned(r, 9);
        return bound == UNBOUNDED ? length : Math.min(length, bound);
    }

    private Object items(Shape shape, int length) throws ReflectiveOperationException, org.omg.CORBA.UserException {
        Object made = Array.newInstance(shape.kind.getComponentType(), length);
        Shape element = shape.element();
        for (int i = 0; i < length; ++i) Array.set(made, i, made(element));
        return made;
    }

    private Choice choice() throws ReflectiveOperationException {
        Colour hue = (Colour) enumeration(Colour.class, 4);
        Choice made = new Choice();
        if (hue == Colour.red) made.number(real());
        else if (hue == Colour.ultra_violet) made.__default();
        else made.place(hue, make(Interop.Point.class));
        return made;
    }

    private Wish wish() {
        Wish made = new Wish();
        int which = octet() & 3;
        switch (which) {
            case 0: made.word(text(UNBOUNDED)); break;
            case 3: made.rest(1000, (byte) octet()); break;
            default: {
                String[] words = new String[length(UNBOUNDED)];
                for (int i = 0; i < words.length; ++i) words[i] = text(UNBOUNDED);
                made.words(which + 1, words);
            }
        }
        return made;
    }

    private Tree leaf() {
        Tree made = new Tree();
        made.leaf(text(UNBOUNDED));
        return made;
    }

    private Tree tree() {
        int shape = octet();
        if ((shape & 1) == 1) return leaf();
        Tree[] leaves = new Tree[shape >> 1 & 3];
        for (int i = 0; i < leaves.length; ++i) leaves[i] = leaf();
        Tree inner = new Tree();
        inner.below(leaves);
        Tree made = new Tree();
        made.below(new Tree[] {inner, leaf()});
        return made;
    }

    private BigDecimal price() {
        return BigDecimal.valueOf((int) integer(32, true) % 1000000000, 2);
    }

    private Kinds kinds() throws ReflectiveOperationException {
        Kinds made = new Kinds();
        made.lead = (byte) octet();
        made.first = choice();
        made.cost = price();
        made.second = wish();
        made.third = tree();
        made.costs = new BigDecimal[] {price(), price()};
        return made;
    }
}
