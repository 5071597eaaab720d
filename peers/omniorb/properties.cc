// A client of a property service: `properties PROPERTY-SET-FACTORY PROPERTY-SET-DEF-FACTORY` creates sets and calls
// each of their operations.
#include <iostream>
#include <stdexcept>
#include <string>

#include "CosPropertyService.hh"

using namespace CosPropertyService;

namespace {

void ensure(bool good, const char *what) {
    if (!good) throw std::runtime_error(what);
}

CORBA::Any number(CORBA::Long value) {
    CORBA::Any any;
    any <<= value;
    return any;
}

CORBA::Any text(const char *value) {
    CORBA::Any any;
    any <<= value;
    return any;
}

template <class Exception, class Call> void raises(Call call, const char *what) {
    try {
        call();
    } catch (const Exception &) {
        return;
    }
    throw std::runtime_error(what);
}

void fails(const MultipleExceptions &raised, CORBA::ULong nth, ExceptionReason reason, const char *name) {
    const PropertyException &one = raised.exceptions[nth];
    ensure(one.reason == reason && std::string(one.failing_property_name) == name, "a property failed for another reason");
}

void use_set(PropertySetFactory_ptr factory) {
    PropertySet_var set = factory->create_propertyset();
    set->define_property("a", number(1));
    set->define_property("b", text("x"));
    raises<ConflictingProperty>([&] { set->define_property("a", text("x")); }, "the type of a property was changed");
    raises<InvalidPropertyName>([&] { set->define_property("", text("x")); }, "a property has an empty name");
    raises<PropertyNotFound>([&] { set->delete_property("none"); }, "a property was deleted that is not there");
    Properties several(3);
    several.length(3);
    several[0].property_name = CORBA::string_dup("c");
    several[0].property_value = number(3);
    several[1].property_name = CORBA::string_dup("");
    several[1].property_value = number(4);
    several[2].property_name = CORBA::string_dup("b");
    several[2].property_value = number(5);
    try {
        set->define_properties(several);
        throw std::runtime_error("no property failed");
    } catch (const MultipleExceptions &raised) {
        ensure(raised.exceptions.length() == 2, "another number failed");
        fails(raised, 0, invalid_property_name, "");
        fails(raised, 1, conflicting_property, "b");
    }
    ensure(set->get_number_of_properties() == 3, "it has another number of properties");
    CORBA::Any_var value = set->get_property_value("c");
    CORBA::Long found;
    ensure((value.in() >>= found) && found == 3, "the value is another");

    PropertyNames_var names;
    PropertyNamesIterator_var more;
    set->get_all_property_names(1, names, more);
    ensure(names->length() == 1 && std::string(names[0u]) == "a", "the first name is another");
    CORBA::String_var next;
    ensure(more->next_one(next) && std::string(next) == "b", "the second name is another");
    ensure(more->next_n(5, names) && names->length() == 1, "there is another number of names");
    ensure(!more->next_one(next), "there is a further name");
    more->destroy();
    Properties_var all;
    PropertiesIterator_var rest;
    set->get_all_properties(0, all, rest);
    ensure(all->length() == 0 && rest->next_n(2, all) && all->length() == 2, "the iterator has other properties");
    rest->reset();
    Property_var one;
    ensure(rest->next_one(one) && std::string(one->property_name) == "a", "the first property is another");
    set->get_all_properties(3, all, rest);
    ensure(CORBA::is_nil(rest), "there is an iterator over nothing");

    names->length(2);
    names[0u] = CORBA::string_dup("none");
    names[1u] = CORBA::string_dup("a");
    ensure(!set->get_properties(names, all), "a property is complete that is not there");
    CORBA::TypeCode_var type = all[0u].property_value.type();
    ensure(type->kind() == CORBA::tk_void && (all[1u].property_value >>= found) && found == 1, "the values are others");
    ensure(set->delete_all_properties() && !set->is_property_defined("a"), "a property remains");
}

void use_modes(PropertySetDefFactory_ptr factory) {
    PropertyDefs defs(1);
    defs.length(1);
    defs[0].property_name = CORBA::string_dup("fixed");
    defs[0].property_value = number(1);
    defs[0].property_mode = fixed_readonly;
    PropertySetDef_var set = factory->create_initial_propertysetdef(defs);
    raises<ReadOnlyProperty>([&] { set->define_property("fixed", number(2)); }, "a read-only property was changed");
    raises<FixedProperty>([&] { set->delete_property("fixed"); }, "a fixed property was deleted");
    raises<UnsupportedMode>([&] { set->set_property_mode("fixed", normal); }, "a mode allows more than before");
    set->define_property_with_mode("a", text("x"), normal);
    ensure(set->get_property_mode("a") == normal, "the mode is another");
    set->set_property_mode("a", read_only);
    PropertyNames names(2);
    names.length(2);
    names[0] = CORBA::string_dup("a");
    names[1] = CORBA::string_dup("none");
    PropertyModes_var modes;
    ensure(!set->get_property_modes(names, modes), "a mode is complete that is not there");
    ensure(modes[0u].property_mode == read_only && modes[1u].property_mode == undefined, "the modes are others");
    ensure(!set->delete_all_properties(), "a fixed property was deleted");
    PropertySet_var base = PropertySet::_narrow(set);
    ensure(!CORBA::is_nil(base) && base->get_number_of_properties() == 1, "it is no property set");
}

void use_constraints(PropertySetFactory_ptr factory, PropertySetDefFactory_ptr def_factory) {
    PropertyTypes types(1);
    types.length(1);
    types[0] = CORBA::TypeCode::_duplicate(CORBA::_tc_string);
    Properties none;
    PropertySet_var set = factory->create_constrained_propertyset(types, none);
    raises<UnsupportedTypeCode>([&] { set->define_property("a", number(1)); }, "another type is allowed");
    PropertyDefs defs(1);
    defs.length(1);
    defs[0].property_name = CORBA::string_dup("a");
    defs[0].property_value = number(1);
    defs[0].property_mode = normal;
    raises<ConstraintNotSupported>([&] { def_factory->create_constrained_propertysetdef(types, defs); },
                                   "the constraints contradict each other");
    types.length(0);
    PropertySetDef_var def = def_factory->create_constrained_propertysetdef(types, defs);
    raises<UnsupportedProperty>([&] { def->define_property("b", number(1)); }, "another property is allowed");
    PropertyDefs_var allowed;
    def->get_allowed_properties(allowed);
    ensure(allowed->length() == 1 && std::string(allowed[0u].property_name) == "a", "another property is allowed");
    PropertyTypes_var allowed_types;
    def->get_allowed_property_types(allowed_types);
    ensure(allowed_types->length() == 0, "a type is allowed");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        ensure(argc == 3, "usage: properties PROPERTY-SET-FACTORY PROPERTY-SET-DEF-FACTORY");
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        PropertySetFactory_var factory = PropertySetFactory::_narrow(object);
        object = orb->string_to_object(argv[2]);
        PropertySetDefFactory_var def_factory = PropertySetDefFactory::_narrow(object);
        ensure(!CORBA::is_nil(factory) && !CORBA::is_nil(def_factory), "the objects are no factories");
        use_set(factory);
        use_modes(def_factory);
        use_constraints(factory, def_factory);
        orb->destroy();
    } catch (const CORBA::Exception &raised) {
        std::cerr << raised._name() << "\n";
        return 1;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    std::cout << "ok\n";
    return 0;
}
