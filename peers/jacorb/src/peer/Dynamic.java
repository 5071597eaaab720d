package peer;

import java.util.ArrayList;
import java.util.List;
import org.omg.CORBA.Any;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.DynamicAny.DynAny;
import org.omg.DynamicAny.DynAnyFactory;
import org.omg.DynamicAny.DynArrayHelper;
import org.omg.DynamicAny.DynEnumHelper;
import org.omg.DynamicAny.DynFixedHelper;
import org.omg.DynamicAny.DynSequenceHelper;
import org.omg.DynamicAny.DynStruct;
import org.omg.DynamicAny.DynStructHelper;
import org.omg.DynamicAny.DynUnion;
import org.omg.DynamicAny.DynUnionHelper;
import org.omg.DynamicAny.DynValue;
import org.omg.DynamicAny.DynValueHelper;
import org.omg.DynamicAny.NameDynAnyPair;

/** Operations on values whose type is known only at run time; the lines are those of peers/omniorb/samples.hh. */
final class Dynamic {
    private final DynAnyFactory factory;

    Dynamic(DynAnyFactory factory) {
        this.factory = factory;
    }

    /** A type as one line; an enclosing type is shown by its ID alone. */
    static String showType(TypeCode type) throws org.omg.CORBA.UserException {
        StringBuilder out = new StringBuilder();
        showType(type, new ArrayList<>(), out);
        return out.toString();
    }

    private static void showType(TypeCode type, List<String> within, StringBuilder out) throws org.omg.CORBA.UserException {
        int kind = type.kind().value();
        out.append(kind);
        boolean holdsMembers = isOneOf(kind, TCKind._tk_struct, TCKind._tk_union, TCKind._tk_except, TCKind._tk_value);
        boolean named = holdsMembers || isOneOf(kind, TCKind._tk_enum, TCKind._tk_value_box, TCKind._tk_alias, TCKind._tk_objref);
        if (named) {
            out.append(' ').append(type.id());
            if (within.contains(type.id())) return;
            within.add(type.id());
        }
        if (holdsMembers || kind == TCKind._tk_enum) {
            out.append('{');
            for (int i = 0; i < type.member_count(); ++i) {
                out.append(type.member_name(i)).append(' ');
                if (!holdsMembers) continue;
                showType(type.member_type(i), within, out);
                out.append(' ');
            }
            out.append('}');
        }
        if (kind == TCKind._tk_union && type.default_index() >= 0) out.append(type.default_index());
        if (isOneOf(kind, TCKind._tk_string, TCKind._tk_wstring, TCKind._tk_sequence, TCKind._tk_array)) {
            out.append(' ').append(type.length());
        }
        if (kind == TCKind._tk_fixed) out.append(' ').append(type.fixed_digits()).append(' ').append(type.fixed_scale());
        if (isOneOf(kind, TCKind._tk_sequence, TCKind._tk_array, TCKind._tk_alias, TCKind._tk_value_box)) {
            out.append('<');
            showType(type.content_type(), within, out);
            out.append('>');
        }
        if (named) within.remove(within.size() - 1);
    }

    private static boolean isOneOf(int kind, int... kinds) {
        for (int one : kinds) {
            if (one == kind) return true;
        }
        return false;
    }

    /** A value as one line. */
    String show(Any value) throws org.omg.CORBA.UserException {
        StringBuilder out = new StringBuilder();
        show(factory.create_dyn_any(value), out);
        return out.toString();
    }

    private void show(DynAny value, StringBuilder out) throws org.omg.CORBA.UserException {
        int kind = Shape.unaliased(value.type()).kind().value();
        switch (kind) {
            case TCKind._tk_null: case TCKind._tk_void: out.append("nothing"); return;
            case TCKind._tk_short: out.append(value.get_short()); return;
            case TCKind._tk_long: out.append(value.get_long()); return;
            case TCKind._tk_ushort: out.append(value.get_ushort() & 0xffff); return;
            case TCKind._tk_ulong: out.append(Integer.toUnsignedString(value.get_ulong())); return;
            case TCKind._tk_longlong: out.append(value.get_longlong()); return;
            case TCKind._tk_ulonglong: out.append(Long.toUnsignedString(value.get_ulonglong())); return;
            case TCKind._tk_float: out.append(Integer.toHexString(Float.floatToRawIntBits(value.get_float()))); return;
            case TCKind._tk_double: out.append(Long.toHexString(Double.doubleToRawLongBits(value.get_double()))); return;
            case TCKind._tk_boolean: out.append(value.get_boolean() ? 1 : 0); return;
            case TCKind._tk_octet: out.append(value.get_octet() & 0xff); return;
            case TCKind._tk_char: out.append((int) value.get_char()); return;
            case TCKind._tk_wchar: out.append((int) value.get_wchar()); return;
            case TCKind._tk_string: out.append('"').append(value.get_string()).append('"'); return;
            case TCKind._tk_wstring:
                for (char unit : value.get_wstring().toCharArray()) out.append((int) unit).append('.');
                return;
            case TCKind._tk_fixed: out.append(DynFixedHelper.narrow(value).get_value()); return;
            case TCKind._tk_enum: out.append(DynEnumHelper.narrow(value).get_as_string()); return;
            case TCKind._tk_objref: out.append(value.get_reference() == null ? "nil" : "object"); return;
            case TCKind._tk_TypeCode: out.append(showType(value.get_typecode())); return;
            case TCKind._tk_any: {
                Any inner = value.get_any();
                out.append("any ").append(showType(inner.type())).append(' ');
                show(factory.create_dyn_any(inner), out);
                return;
            }
            default:
                out.append('{');
                showConstructed(value, kind, out);
                out.append('}');
        }
    }

    private interface Name {
        String name() throws org.omg.CORBA.UserException;
    }

    private void showConstructed(DynAny value, int kind, StringBuilder out) throws org.omg.CORBA.UserException {
        switch (kind) {
            case TCKind._tk_struct: case TCKind._tk_except: {
                DynStruct all = DynStructHelper.narrow(value);
                showParts(all, all::current_member_name, out);
                return;
            }
            case TCKind._tk_value: {
                DynValue all = DynValueHelper.narrow(value);
                if (all.is_null()) out.append("null");
                else showParts(all, all::current_member_name, out);
                return;
            }
            case TCKind._tk_union: {
                DynUnion all = DynUnionHelper.narrow(value);
                show(all.get_discriminator(), out);
                if (all.has_no_active_member()) return;
                out.append(' ').append(all.member_name()).append(' ');
                show(all.member(), out);
                return;
            }
            default: showParts(value, () -> "", out);
        }
    }

    private void showParts(DynAny value, Name name, StringBuilder out) throws org.omg.CORBA.UserException {
        value.rewind();
        for (int i = 0; i < value.component_count(); ++i) {
            out.append(name.name()).append(' ');
            show(value.current_component(), out);
            out.append(' ');
            value.next();
        }
        value.rewind();
    }

    /** A value of the same type, with each part inserted separately. */
    Any rebuild(Any value) throws org.omg.CORBA.UserException {
        return rebuilt(factory.create_dyn_any(value)).to_any();
    }

    /** Parts are created first and inserted then: of sequences and arrays, `current_component` gives copies (README.md). */
    private DynAny rebuilt(DynAny from) throws org.omg.CORBA.UserException {
        DynAny to = factory.create_dyn_any_from_type_code(from.type());
        switch (Shape.unaliased(from.type()).kind().value()) {
            case TCKind._tk_union: {
                DynUnion all = DynUnionHelper.narrow(to);
                DynUnion old = DynUnionHelper.narrow(from);
                all.set_discriminator(rebuilt(old.get_discriminator()));
                if (!old.has_no_active_member()) all.member().assign(rebuilt(old.member()));
                break;
            }
            case TCKind._tk_sequence:
                DynSequenceHelper.narrow(to).set_length(from.component_count());
                DynSequenceHelper.narrow(to).set_elements_as_dyn_any(rebuilt(DynSequenceHelper.narrow(from).get_elements_as_dyn_any()));
                break;
            case TCKind._tk_array:
                DynArrayHelper.narrow(to).set_elements_as_dyn_any(rebuilt(DynArrayHelper.narrow(from).get_elements_as_dyn_any()));
                break;
            case TCKind._tk_struct: case TCKind._tk_except: {
                NameDynAnyPair[] members = DynStructHelper.narrow(from).get_members_as_dyn_any();
                for (NameDynAnyPair member : members) member.value = rebuilt(member.value);
                DynStructHelper.narrow(to).set_members_as_dyn_any(members);
                break;
            }
            case TCKind._tk_short: to.insert_short(from.get_short()); break;
            case TCKind._tk_long: to.insert_long(from.get_long()); break;
            case TCKind._tk_double: to.insert_double(from.get_double()); break;
            case TCKind._tk_string: to.insert_string(from.get_string()); break;
            case TCKind._tk_wstring: to.insert_wstring(from.get_wstring()); break;
            case TCKind._tk_any: to.insert_any(from.get_any()); break;
            default: to.from_any(from.to_any());
        }
        return to;
    }

    private DynAny[] rebuilt(DynAny[] all) throws org.omg.CORBA.UserException {
        DynAny[] made = new DynAny[all.length];
        for (int i = 0; i < all.length; ++i) made[i] = rebuilt(all[i]);
        return made;
    }
}
