package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.CosPropertyService.ConflictingProperty;
import org.omg.CosPropertyService.ConstraintNotSupported;
import org.omg.CosPropertyService.ExceptionReason;
import org.omg.CosPropertyService.FixedProperty;
import org.omg.CosPropertyService.InvalidPropertyName;
import org.omg.CosPropertyService.MultipleExceptions;
import org.omg.CosPropertyService.PropertiesHolder;
import org.omg.CosPropertyService.PropertiesIteratorHolder;
import org.omg.CosPropertyService.Property;
import org.omg.CosPropertyService.PropertyDef;
import org.omg.CosPropertyService.PropertyDefsHolder;
import org.omg.CosPropertyService.PropertyException;
import org.omg.CosPropertyService.PropertyHolder;
import org.omg.CosPropertyService.PropertyModeType;
import org.omg.CosPropertyService.PropertyModesHolder;
import org.omg.CosPropertyService.PropertyNamesHolder;
import org.omg.CosPropertyService.PropertyNamesIteratorHolder;
import org.omg.CosPropertyService.PropertyNotFound;
import org.omg.CosPropertyService.PropertySet;
import org.omg.CosPropertyService.PropertySetDef;
import org.omg.CosPropertyService.PropertySetDefFactory;
import org.omg.CosPropertyService.PropertySetDefFactoryHelper;
import org.omg.CosPropertyService.PropertySetFactory;
import org.omg.CosPropertyService.PropertySetFactoryHelper;
import org.omg.CosPropertyService.PropertySetHelper;
import org.omg.CosPropertyService.PropertyTypesHolder;
import org.omg.CosPropertyService.ReadOnlyProperty;
import org.omg.CosPropertyService.UnsupportedMode;
import org.omg.CosPropertyService.UnsupportedProperty;
import org.omg.CosPropertyService.UnsupportedTypeCode;

/** Uses a property service: its `PropertySetFactory` is the reference of `--call`, its `PropertySetDefFactory` the word behind it. */
final class PropertySets {
    private final ORB orb;
    private final PropertySetFactory factory;
    private final PropertySetDefFactory defFactory;

    private PropertySets(ORB orb, Options options) {
        this.orb = orb;
        factory = PropertySetFactoryHelper.narrow(orb.string_to_object(options.reference));
        defFactory = PropertySetDefFactoryHelper.narrow(orb.string_to_object(options.rest.get(0)));
    }

    static int call(Options options) throws Exception {
        PropertySets sets = new PropertySets(new Broker(options).orb, options);
        Suite suite = new Suite(options.only);
        suite.run("properties/values", sets::values);
        suite.run("properties/several", sets::several);
        suite.run("properties/iterators", sets::iterators);
        suite.run("properties/modes", sets::modes);
        suite.run("properties/initial", sets::initial);
        suite.run("properties/constraints", sets::constraints);
        return suite.verdict();
    }

    private Any any(int value) {
        Any any = orb.create_any();
        any.insert_long(value);
        return any;
    }

    private Any any(String value) {
        Any any = orb.create_any();
        any.insert_string(value);
        return any;
    }

    private Property property(String name, Any value) {
        return new Property(name, value);
    }

    private PropertyDef def(String name, Any value, PropertyModeType mode) {
        return new PropertyDef(name, value, mode);
    }

    /** The failures of a request with several properties, in their order. */
    private static List<String> failures(Suite.Body body) throws Exception {
        List<String> failures = new ArrayList<>();
        for (PropertyException one : raises(MultipleExceptions.class, body).exceptions) {
            failures.add(one.failing_property_name + ":" + one.reason.value());
        }
        return failures;
    }

    private static String failure(String name, ExceptionReason reason) {
        return name + ":" + reason.value();
    }

    private void values() throws Exception {
        PropertySet set = factory.create_propertyset();
        set.define_property("a", any(1));
        set.define_property("a", any(7));
        equal("the value", set.get_property_value("a").extract_long(), 7);
        set.define_property("gr\u00fcn", any("gr\u00fc\u00dfe"));
        equal("the text", set.get_property_value("gr\u00fcn").extract_string(), "gr\u00fc\u00dfe");
        raises(ConflictingProperty.class, () -> set.define_property("a", any("x")));
        raises(InvalidPropertyName.class, () -> set.define_property("", any(1)));
        raises(PropertyNotFound.class, () -> set.get_property_value("none"));
        expect(set.is_property_defined("a") && !set.is_property_defined("A"), "another property is defined");
        set.delete_property("a");
        raises(PropertyNotFound.class, () -> set.delete_property("a"));
        equal("properties", set.get_number_of_properties(), 1);
        // A value with a reference to an object of the service.
        Any reference = orb.create_any();
        reference.insert_Object(set);
        set.define_property("self", reference);
        expect(set.get_property_value("self").extract_Object()._is_equivalent(set), "the reference is another");
        expect(set.delete_all_properties(), "a property remains");
    }

    private void several() throws Exception {
        PropertySet set = factory.create_propertyset();
        set.define_property("b", any("x"));
        Property[] properties = {property("c", any(3)), property("", any(4)), property("b", any(5))};
        equal("failures", failures(() -> set.define_properties(properties)),
            Arrays.asList(failure("", ExceptionReason.invalid_property_name),
                failure("b", ExceptionReason.conflicting_property)));
        equal("the one that did not fail", set.get_property_value("c").extract_long(), 3);
        PropertiesHolder values = new PropertiesHolder();
        expect(!set.get_properties(new String[] {"none", "c"}, values), "a property is complete that is not there");
        equal("its type", values.value[0].property_value.type().kind().value(), TCKind._tk_void);
        equal("the other", values.value[1].property_value.extract_long(), 3);
        equal("deletions", failures(() -> set.delete_properties(new String[] {"c", "c", "b"})),
            Arrays.asList(failure("c", ExceptionReason.property_not_found)));
        equal("properties", set.get_number_of_properties(), 0);
    }

    private void iterators() throws Exception {
        PropertySet set = factory.create_propertyset();
        for (String name : new String[] {"a", "b", "c"}) set.define_property(name, any(name));
        PropertyNamesHolder names = new PropertyNamesHolder();
        PropertyNamesIteratorHolder more = new PropertyNamesIteratorHolder();
        set.get_all_property_names(1, names, more);
        equal("the first name", Arrays.asList(names.value), Arrays.asList("a"));
        StringHolder name = new StringHolder();
        expect(more.value.next_one(name) && name.value.equals("b"), "the second name is another");
        expect(more.value.next_n(5, names), "there is no third name");
        equal("the third name", Arrays.asList(names.value), Arrays.asList("c"));
        expect(!more.value.next_one(name), "there is a further name");
        more.value.destroy();
        PropertiesHolder all = new PropertiesHolder();
        PropertiesIteratorHolder rest = new PropertiesIteratorHolder();
        set.get_all_properties(0, all, rest);
        expect(all.value.length == 0 && rest.value.next_n(2, all) && all.value.length == 2, "the iterator has others");
        rest.value.reset();
        PropertyHolder one = new PropertyHolder();
        expect(rest.value.next_one(one) && one.value.property_name.equals("a"), "the first property is another");
        rest.value.destroy();
        set.get_all_properties(3, all, rest);
        expect(rest.value == null, "there is an iterator over nothing");
    }

    private void modes() throws Exception {
        PropertySetDef set = defFactory.create_initial_propertysetdef(
            new PropertyDef[] {def("fixed", any(1), PropertyModeType.fixed_readonly)});
        raises(ReadOnlyProperty.class, () -> set.define_property("fixed", any(2)));
        raises(FixedProperty.class, () -> set.delete_property("fixed"));
        raises(UnsupportedMode.class, () -> set.set_property_mode("fixed", PropertyModeType.normal));
        set.define_property_with_mode("a", any("x"), PropertyModeType.normal);
        equal("the mode", set.get_property_mode("a"), PropertyModeType.normal);
        set.set_property_mode("a", PropertyModeType.read_only);
        PropertyModesHolder modes = new PropertyModesHolder();
        expect(!set.get_property_modes(new String[] {"a", "none"}, modes), "a mode is complete that is not there");
        equal("the mode", modes.value[0].property_mode, PropertyModeType.read_only);
        equal("no mode", modes.value[1].property_mode, PropertyModeType.undefined);
        expect(!set.delete_all_properties(), "a fixed property was deleted");
        equal("properties", PropertySetHelper.narrow(set).get_number_of_properties(), 1);
    }

    private void initial() throws Exception {
        Property[] wrong = {property("", any(1))};
        equal("failures", failures(() -> factory.create_initial_propertyset(wrong)),
            Arrays.asList(failure("", ExceptionReason.invalid_property_name)));
        PropertySet set = factory.create_initial_propertyset(new Property[] {property("a", any(1))});
        equal("properties", set.get_number_of_properties(), 1);
    }

    private void constraints() throws Exception {
        TypeCode[] texts = {orb.create_string_tc(0)};
        PropertySet set = factory.create_constrained_propertyset(texts, new Property[0]);
        raises(UnsupportedTypeCode.class, () -> set.define_property("a", any(1)));
        PropertyDef[] allowed = {def("a", any(1), PropertyModeType.normal)};
        raises(ConstraintNotSupported.class, () -> defFactory.create_constrained_propertysetdef(texts, allowed));
        PropertySetDef only = defFactory.create_constrained_propertysetdef(new TypeCode[0], allowed);
        raises(UnsupportedProperty.class, () -> only.define_property("b", any(1)));
        PropertyDefsHolder defs = new PropertyDefsHolder();
        only.get_allowed_properties(defs);
        equal("allowed", defs.value.length == 1 ? defs.value[0].property_name : "", "a");
        PropertyTypesHolder types = new PropertyTypesHolder();
        only.get_allowed_property_types(types);
        equal("allowed types", types.value.length, 0);
    }
}
