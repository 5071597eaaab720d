// The samples of tests/interop/idl/anything.idl, and operations on values whose type is known only at run time.
#ifndef SAMPLES_HH
#define SAMPLES_HH

#include <cstdint>
#include <cstring>
#include <functional>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "anything.hh"

namespace samples {

using namespace Anything;

inline DynamicAny::DynAnyFactory_var factory;

struct NodeImpl : virtual OBV_Anything::Node, virtual CORBA::DefaultValueRefCountBase {};

struct NodeFactory : CORBA::ValueFactoryBase {
    CORBA::ValueBase *create_for_unmarshal() override { return new NodeImpl; }
};

inline void start(CORBA::ORB_ptr orb) {
    CORBA::Object_var object = orb->resolve_initial_references("DynAnyFactory");
    factory = DynamicAny::DynAnyFactory::_narrow(object);
    CORBA::ValueFactoryBase *nodes = new NodeFactory;
    orb->register_value_factory("IDL:interop.spandrel/Anything/Node:1.0", nodes);
    nodes->_remove_ref();
}

/// One value by its name: its creation, its extraction from an any and its insertion into another.
struct Sample {
    std::string name;
    std::function<CORBA::Any()> make;
    std::function<CORBA::Any(const CORBA::Any &)> extracted;
};

inline void expect(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(what);
}

inline Point point(CORBA::Short x, CORBA::Double y) {
    Point made;
    made.x = x;
    made.y = y;
    return made;
}

inline Choice choice(const char *text) {
    Choice made;
    made.text(text);
    made._d(blue);
    return made;
}

inline Tree tree() {
    Tree made;
    made.value = 1;
    made.below.length(2);
    made.below[0].value = 2;
    made.below[1].value = 3;
    made.below[1].below.length(1);
    made.below[1].below[0].value = -4;
    return made;
}

inline CORBA::Any of_point() {
    CORBA::Any any;
    any <<= point(-1, 2.5);
    return any;
}

inline Node *nodes() {
    NodeImpl *last = new NodeImpl, *first = new NodeImpl;
    last->value(2);
    last->next(0);
    first->value(1);
    first->next(last);
    return first;
}

inline Parcel parcel() {
    Parcel made;
    made.lead = 7;
    made.contents = of_point();
    made.type = CORBA::TypeCode::_duplicate(_tc_Tree);
    made.chosen = choice("in a parcel");
    return made;
}

/// A sample of a type that is passed by value or constant reference; `Held` is the type that it is extracted into.
template <class Held, class Make> Sample plain(const char *name, Make make) {
    auto put = [make] {
        CORBA::Any any;
        any <<= make();
        return any;
    };
    auto extracted = [](const CORBA::Any &any) {
        Held held{};
        expect(any >>= held, "another type");
        CORBA::Any out;
        out <<= held;
        return out;
    };
    return {name, put, extracted};
}

/// A sample of a constructed type, which stays in the any.
template <class T, class Make> Sample lent(const char *name, Make make) {
    auto put = [make] {
        CORBA::Any any;
        any <<= make();
        return any;
    };
    auto extracted = [](const CORBA::Any &any) {
        const T *held = nullptr;
        expect(any >>= held, "another type");
        CORBA::Any out;
        out <<= *held;
        return out;
    };
    return {name, put, extracted};
}

/// A sample of a type that C++ cannot distinguish from another without a wrapper.
#define TOLD(name, Word, Held, value, arguments) \
    Sample{name, \
           [] { \
               CORBA::Any any; \
               any <<= CORBA::Any::from_##Word(value arguments); \
               return any; \
           }, \
           [](const CORBA::Any &any) { \
               Held held{}; \
               expect(any >>= CORBA::Any::to_##Word(held arguments), "another type"); \
               CORBA::Any out; \
               out <<= CORBA::Any::from_##Word(held arguments); \
               return out; \
           }}
#define NOTHING
#define UNBOUNDED , 0
#define DIGITS , 9, 2

inline CORBA::WChar *euro_text() {
    static CORBA::WChar text[] = {'5', ' ', 0x20ac, 0};
    return text;
}

inline std::vector<Sample> simple() {
    return {
        {"null", [] { return CORBA::Any(); }, [](const CORBA::Any &any) { return any; }},
        plain<CORBA::Short>("short", [] { return CORBA::Short(-2); }),
        plain<CORBA::ULongLong>("ulonglong", [] { return CORBA::ULongLong(18000000000000000000u); }),
        plain<CORBA::Float>("float", [] { return CORBA::Float(0.5); }),
        plain<CORBA::Double>("double", [] { return CORBA::Double(-1e100); }),
        TOLD("boolean", boolean, CORBA::Boolean, true, NOTHING),
        TOLD("octet", octet, CORBA::Octet, 254, NOTHING),
        TOLD("char", char, CORBA::Char, 'z', NOTHING),
        plain<const char *>("string", [] { return "coffee"; }),
        TOLD("fixed", fixed, CORBA::Fixed, CORBA::Fixed("-1.25"), DIGITS),
        plain<Colour>("colour", [] { return green; }),
        plain<CORBA::TypeCode_ptr>("typecode", [] { return _tc_Tree; }),
        {"nothing-there",
         [] {
             CORBA::Any any;
             any <<= CORBA::Object::_nil();
             return any;
         },
         [](const CORBA::Any &any) {
             CORBA::Object_var held;
             expect(any >>= CORBA::Any::to_object(held.out()), "another type");
             CORBA::Any out;
             out <<= held.in();
             return out;
         }},
    };
}

inline std::vector<Sample> constructed() {
    auto points = [] {
        Points made;
        made.length(2);
        made[0] = point(1, 0.5);
        made[1] = point(2, -0.5);
        return made;
    };
    auto anys = [] {
        Anys made;
        made.length(3);
        made[0] <<= CORBA::Short(3);
        made[1] = of_point();
        made[2] <<= tree();
        return made;
    };
    auto letter = [](bool word) {
        Letter made;
        if (word) made.word("a word");
        else {
            made.rest(9);
            made._d('q');
        }
        return made;
    };
    auto none = [] {
        Flag made;
        made._default();
        return made;
    };
    auto matrix = [] {
        CORBA::Any any;
        Matrix rows = {{1, 2, 3}, {-4, -5, -6}};
        any <<= Matrix_forany(rows, 0);
        return any;
    };
    auto broke = [] { return Broke("glass", of_point()); };
    return {
        lent<Point>("point", [] { return point(-1, 2.5); }),
        lent<Points>("points", points),
        {"matrix", matrix,
         [](const CORBA::Any &any) {
             Matrix_forany held;
             expect(any >>= held, "another type");
             CORBA::Any out;
             out <<= held;
             return out;
         }},
        lent<Choice>("choice", [] { return choice("blue"); }),
        lent<Letter>("letter", [letter] { return letter(true); }),
        lent<Letter>("letter-default", [letter] { return letter(false); }),
        lent<Flag>("flag-none", none),
        lent<Tree>("tree", tree),
        lent<Parcel>("parcel", parcel),
        lent<CORBA::Any>("any", of_point),
        lent<Anys>("anys", anys),
        lent<Broke>("broke", broke),
    };
}

/// Types that GIOP 1.0 does not have.
inline std::vector<Sample> wide() {
    return {
        TOLD("wchar", wchar, CORBA::WChar, 0x20ac, NOTHING),
        {"wstring",
         [] {
             CORBA::Any any;
             any <<= static_cast<const CORBA::WChar *>(euro_text());
             return any;
         },
         [](const CORBA::Any &any) {
             const CORBA::WChar *held = nullptr;
             expect(any >>= held, "another type");
             CORBA::Any out;
             out <<= held;
             return out;
         }},
    };
}

/// Types since GIOP 1.2.
inline std::vector<Sample> values() {
    return {
        plain<Node *>("value", nodes),
        plain<Text *>("value-box", [] { return new Text("boxed"); }),
    };
}

#undef TOLD

inline const std::vector<Sample> &all() {
    static const std::vector<Sample> made = [] {
        std::vector<Sample> all;
        for (const auto &some : {simple(), constructed(), wide(), values()}) {
            all.insert(all.end(), some.begin(), some.end());
        }
        return all;
    }();
    return made;
}

inline const Sample &find(const std::string &name) {
    for (const Sample &sample : all()) {
        if (sample.name == name) return sample;
    }
    throw std::runtime_error("no sample of that name");
}

inline CORBA::TypeCode_ptr unaliased(CORBA::TypeCode_ptr type) {
    CORBA::TypeCode_var seen = CORBA::TypeCode::_duplicate(type);
    while (seen->kind() == CORBA::tk_alias) seen = seen->content_type();
    return seen._retn();
}

/// A type as one line; an enclosing type is shown by its ID alone.
inline void show_type(CORBA::TypeCode_ptr type, std::vector<std::string> &within, std::ostream &out) {
    CORBA::TCKind kind = type->kind();
    out << kind;
    bool named = kind == CORBA::tk_struct || kind == CORBA::tk_union || kind == CORBA::tk_enum ||
                 kind == CORBA::tk_except || kind == CORBA::tk_value || kind == CORBA::tk_value_box ||
                 kind == CORBA::tk_alias || kind == CORBA::tk_objref;
    if (named) {
        std::string id = type->id();
        out << ' ' << id;
        for (const std::string &outer : within) {
            if (outer == id) return;
        }
        within.push_back(id);
    }
    bool holds_members = kind == CORBA::tk_struct || kind == CORBA::tk_union || kind == CORBA::tk_except ||
                         kind == CORBA::tk_value;
    if (holds_members || kind == CORBA::tk_enum) {
        out << '{';
        for (CORBA::ULong i = 0; i < type->member_count(); ++i) {
            out << type->member_name(i) << ' ';
            if (!holds_members) continue;
            CORBA::TypeCode_var member = type->member_type(i);
            show_type(member, within, out);
            out << ' ';
        }
        out << '}';
    }
    // omniORB has -2 for none, the standard -1.
    if (kind == CORBA::tk_union && type->default_index() >= 0) out << type->default_index();
    if (kind == CORBA::tk_string || kind == CORBA::tk_wstring || kind == CORBA::tk_sequence ||
        kind == CORBA::tk_array) {
        out << ' ' << type->length();
    }
    if (kind == CORBA::tk_fixed) out << ' ' << type->fixed_digits() << ' ' << type->fixed_scale();
    if (kind == CORBA::tk_sequence || kind == CORBA::tk_array || kind == CORBA::tk_alias ||
        kind == CORBA::tk_value_box) {
        CORBA::TypeCode_var content = type->content_type();
        out << '<';
        show_type(content, within, out);
        out << '>';
    }
    if (named) within.pop_back();
}

inline std::string show_type(CORBA::TypeCode_ptr type) {
    std::vector<std::string> within;
    std::ostringstream out;
    show_type(type, within, out);
    return out.str();
}

template <class Bits, class T> std::string bits(T value) {
    Bits seen;
    static_assert(sizeof seen == sizeof value, "");
    std::memcpy(&seen, &value, sizeof seen);
    std::ostringstream out;
    out << std::hex << seen;
    return out.str();
}

inline void show(DynamicAny::DynAny_ptr value, std::ostream &out);

/// All components in order, each after its name if it has one.
inline void show_parts(DynamicAny::DynAny_ptr value, const std::function<std::string()> &name, std::ostream &out) {
    value->rewind();
    for (CORBA::ULong i = 0; i < value->component_count(); ++i, value->next()) {
        out << name() << ' ';
        DynamicAny::DynAny_var part = value->current_component();
        show(part, out);
        out << ' ';
    }
    value->rewind();
}

inline std::string member_name(CORBA::String_var name) { return name.in(); }

inline void show_constructed(DynamicAny::DynAny_ptr value, CORBA::TCKind kind, std::ostream &out) {
    out << '{';
    if (kind == CORBA::tk_struct || kind == CORBA::tk_except) {
        DynamicAny::DynStruct_var all = DynamicAny::DynStruct::_narrow(value);
        show_parts(value, [&] { return member_name(all->current_member_name()); }, out);
    } else if (kind == CORBA::tk_value) {
        DynamicAny::DynValue_var all = DynamicAny::DynValue::_narrow(value);
        if (all->is_null()) out << "null";
        else show_parts(value, [&] { return member_name(all->current_member_name()); }, out);
    } else if (kind == CORBA::tk_value_box) {
        DynamicAny::DynValueBox_var box = DynamicAny::DynValueBox::_narrow(value);
        if (box->is_null()) out << "null";
        else show(DynamicAny::DynAny_var(box->get_boxed_value_as_dyn_any()), out);
    } else if (kind == CORBA::tk_union) {
        DynamicAny::DynUnion_var all = DynamicAny::DynUnion::_narrow(value);
        show(DynamicAny::DynAny_var(all->get_discriminator()), out);
        if (!all->has_no_active_member()) {
            out << ' ' << member_name(all->member_name()) << ' ';
            show(DynamicAny::DynAny_var(all->member()), out);
        }
    } else {
        show_parts(value, [] { return std::string(); }, out);
    }
    out << '}';
}

inline void show(DynamicAny::DynAny_ptr value, std::ostream &out) {
    CORBA::TypeCode_var type = value->type();
    CORBA::TypeCode_var plain = unaliased(type);
    switch (plain->kind()) {
    case CORBA::tk_null:
    case CORBA::tk_void: out << "nothing"; return;
    case CORBA::tk_short: out << value->get_short(); return;
    case CORBA::tk_long: out << value->get_long(); return;
    case CORBA::tk_ushort: out << value->get_ushort(); return;
    case CORBA::tk_ulong: out << value->get_ulong(); return;
    case CORBA::tk_longlong: out << value->get_longlong(); return;
    case CORBA::tk_ulonglong: out << value->get_ulonglong(); return;
    case CORBA::tk_float: out << bits<std::uint32_t>(value->get_float()); return;
    case CORBA::tk_double: out << bits<std::uint64_t>(value->get_double()); return;
    case CORBA::tk_boolean: out << int(value->get_boolean()); return;
    case CORBA::tk_octet: out << int(value->get_octet()); return;
    case CORBA::tk_char: out << int(static_cast<unsigned char>(value->get_char())); return;
    case CORBA::tk_wchar: out << int(value->get_wchar()); return;
    case CORBA::tk_string: out << '"' << CORBA::String_var(value->get_string()).in() << '"'; return;
    case CORBA::tk_wstring: {
        CORBA::WString_var text = value->get_wstring();
        for (const CORBA::WChar *unit = text; *unit; ++unit) out << int(*unit) << '.';
        return;
    }
    case CORBA::tk_fixed: {
        DynamicAny::DynFixed_var fixed = DynamicAny::DynFixed::_narrow(value);
        out << CORBA::String_var(fixed->get_value()).in();
        return;
    }
    case CORBA::tk_enum: {
        DynamicAny::DynEnum_var chosen = DynamicAny::DynEnum::_narrow(value);
        out << CORBA::String_var(chosen->get_as_string()).in();
        return;
    }
    case CORBA::tk_objref: {
        CORBA::Object_var object = value->get_reference();
        out << (CORBA::is_nil(object) ? "nil" : "object");
        return;
    }
    case CORBA::tk_TypeCode: out << show_type(CORBA::TypeCode_var(value->get_typecode())); return;
    case CORBA::tk_any: {
        CORBA::Any_var inner = value->get_any();
        out << "any " << show_type(CORBA::TypeCode_var(inner->type())) << ' ';
        show(DynamicAny::DynAny_var(factory->create_dyn_any(inner)), out);
        return;
    }
    default: show_constructed(value, plain->kind(), out);
    }
}

/// A value as one line.
inline std::string show(const CORBA::Any &value) {
    std::ostringstream out;
    show(DynamicAny::DynAny_var(factory->create_dyn_any(value)), out);
    return out.str();
}

inline void refill(DynamicAny::DynAny_ptr to, DynamicAny::DynAny_ptr from);

inline void refill_parts(DynamicAny::DynAny_ptr to, DynamicAny::DynAny_ptr from) {
    to->rewind();
    from->rewind();
    for (CORBA::ULong i = 0; i < from->component_count(); ++i, to->next(), from->next()) {
        refill(DynamicAny::DynAny_var(to->current_component()), DynamicAny::DynAny_var(from->current_component()));
    }
}

/// Copies the parts of a value into another of the same type, each inserted separately.
inline void refill(DynamicAny::DynAny_ptr to, DynamicAny::DynAny_ptr from) {
    CORBA::TypeCode_var type = from->type();
    CORBA::TypeCode_var plain = unaliased(type);
    switch (plain->kind()) {
    case CORBA::tk_union: {
        DynamicAny::DynUnion_var all = DynamicAny::DynUnion::_narrow(to);
        DynamicAny::DynUnion_var old = DynamicAny::DynUnion::_narrow(from);
        all->set_discriminator(DynamicAny::DynAny_var(old->get_discriminator()));
        if (old->has_no_active_member()) return;
        refill(DynamicAny::DynAny_var(all->member()), DynamicAny::DynAny_var(old->member()));
        return;
    }
    case CORBA::tk_sequence: {
        DynamicAny::DynSequence_var all = DynamicAny::DynSequence::_narrow(to);
        all->set_length(from->component_count());
        refill_parts(to, from);
        return;
    }
    case CORBA::tk_value: {
        DynamicAny::DynValue_var all = DynamicAny::DynValue::_narrow(to);
        if (DynamicAny::DynValue_var(DynamicAny::DynValue::_narrow(from))->is_null()) {
            all->set_to_null();
            return;
        }
        all->set_to_value();
        refill_parts(to, from);
        return;
    }
    case CORBA::tk_struct:
    case CORBA::tk_except:
    case CORBA::tk_array: refill_parts(to, from); return;
    case CORBA::tk_short: to->insert_short(from->get_short()); return;
    case CORBA::tk_long: to->insert_long(from->get_long()); return;
    case CORBA::tk_double: to->insert_double(from->get_double()); return;
    case CORBA::tk_string: to->insert_string(CORBA::String_var(from->get_string())); return;
    case CORBA::tk_wstring: to->insert_wstring(CORBA::WString_var(from->get_wstring())); return;
    default: to->from_any(CORBA::Any_var(from->to_any()));
    }
}

inline CORBA::Any *rebuild(const CORBA::Any &value) {
    CORBA::TypeCode_var type = value.type();
    DynamicAny::DynAny_var from = factory->create_dyn_any(value);
    DynamicAny::DynAny_var to = factory->create_dyn_any_from_type_code(type);
    refill(to, from);
    return to->to_any();
}

inline void same(const char *what, const std::string &seen, const std::string &expected) {
    if (seen != expected) throw std::runtime_error(std::string(what) + ": expected " + expected + ", saw " + seen);
}

/// Fails unless the value is the sample of that name, by its type in C++.
inline void check(const char *what, const std::string &name, const CORBA::Any &value) {
    const Sample &sample = find(name);
    same(what, show(sample.extracted(value)), show(sample.make()));
}

} // namespace samples

#endif
