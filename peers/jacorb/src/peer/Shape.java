package peer;

import java.lang.reflect.Field;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.CORBA.portable.Streamable;

/** The values of a place: the class in Java, and the type in IDL, which has signs and bounds. */
final class Shape {
    final Class<?> kind;
    private final TypeCode type;

    Shape(Class<?> kind, TypeCode type) {
        this.kind = kind;
        this.type = type;
    }

    /** The shape that a class declares. */
    static Shape of(Class<?> kind) {
        try {
            Class<?> helper = Class.forName(kind.getName() + "Helper");
            return new Shape(kind, isLoopy(kind) ? null : (TypeCode) helper.getMethod("type").invoke(null));
        } catch (ReflectiveOperationException error) {
            throw new IllegalArgumentException("no helper for " + kind, error);
        }
    }

    static Shape of(TypeCode type, Class<?> kind) {
        return new Shape(kind, type);
    }

    /** The shape of a holder's value, for the operation `rotate_NAME`. */
    static Shape ofHolder(String name, Class<?> holder) {
        try {
            Class<?> kind = holder.getField("value").getType();
            switch (name) {
                case "ushort": case "ulong": case "ulonglong": return new Shape(kind, primitive(name));
                case "shorttext": return new Shape(kind, org.omg.CORBA.ORB.init().create_string_tc(Interop.BOUND.value));
                default:
            }
            if (isLoopy(kind)) return new Shape(kind, null);
            return new Shape(kind, ((Streamable) holder.getConstructor().newInstance())._type());
        } catch (ReflectiveOperationException error) {
            throw new IllegalArgumentException("not a holder: " + holder, error);
        }
    }

    private static TypeCode primitive(String name) {
        TCKind kind = name.equals("ushort") ? TCKind.tk_ushort : name.equals("ulong") ? TCKind.tk_ulong : TCKind.tk_ulonglong;
        return org.omg.CORBA.ORB.init().get_primitive_tc(kind);
    }

    /** JacORB's compiler generates a helper of a recursive union whose type code never ends; types with such a member have the same fault. */
    private static boolean isLoopy(Class<?> kind) {
        return kind == Interop.Tree.class || kind == Interop.Kinds.class;
    }

    /** The type behind its names; null where JacORB has none. */
    TypeCode type() {
        return type == null ? null : unaliased(type);
    }

    static TypeCode unaliased(TypeCode type) {
        try {
            TypeCode seen = type;
            while (seen.kind() == TCKind.tk_alias) seen = seen.content_type();
            return seen;
        } catch (org.omg.CORBA.TypeCodePackage.BadKind error) {
            throw new IllegalStateException(error);
        }
    }

    /** The shape of the i-th member. */
    Shape member(int i) {
        try {
            return new Shape(field(i).getType(), type().member_type(i));
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }

    Field field(int i) {
        try {
            String name = type().member_name(i);
            try {
                return kind.getField(name);
            } catch (NoSuchFieldException escaped) {
                return kind.getField("_" + name);
            }
        } catch (org.omg.CORBA.UserException | NoSuchFieldException error) {
            throw new IllegalStateException(error);
        }
    }

    Shape element() {
        try {
            return new Shape(kind.getComponentType(), type().content_type());
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }
}
