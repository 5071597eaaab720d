// A client of a trader, and an evaluator of dynamic properties: `trading LOOKUP` adds service types, exports offers, queries, changes
// and withdraws them, and adds and removes links.
#include <iostream>
#include <stdexcept>
#include <string>

#include "CosTrading.hh"
#include "CosTradingDynamic.hh"
#include "CosTradingRepos.hh"

using namespace CosTrading;
using CosTradingRepos::ServiceTypeRepository;
using CosTradingRepos::ServiceTypeRepository_ptr;
using CosTradingRepos::ServiceTypeRepository_var;

namespace {

void ensure(bool good, const char *what) {
    if (!good) throw std::runtime_error(what);
}

template <class Exception, class Call> void raises(Call call, const char *what) {
    try {
        call();
    } catch (const Exception &) {
        return;
    }
    throw std::runtime_error(what);
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

PropertySeq properties(const char *name, const CORBA::Any &queue) {
    PropertySeq all(2);
    all.length(2);
    all[0].name = CORBA::string_dup("name");
    all[0].value = text(name);
    all[1].name = CORBA::string_dup("queue");
    all[1].value = queue;
    return all;
}

/// Answers 2 for `queue`, and fails for `broken`.
class Evaluator : public POA_CosTradingDynamic::DynamicPropEval {
public:
    CORBA::Any *evalDP(const char *name, CORBA::TypeCode_ptr type, const CORBA::Any &extra) override {
        const char *info;
        if ((extra >>= info) && std::string(info) == "broken") {
            throw CosTradingDynamic::DPEvalFailure(name, CORBA::TypeCode::_duplicate(type), extra);
        }
        calls += 1;
        return new CORBA::Any(number(2));
    }

    int calls = 0;
};

CORBA::Any dynamic(CosTradingDynamic::DynamicPropEval_ptr evaluator, const char *info) {
    CosTradingDynamic::DynamicProp property;
    property.eval_if = CosTradingDynamic::DynamicPropEval::_duplicate(evaluator);
    property.returned_type = CORBA::TypeCode::_duplicate(CORBA::_tc_long);
    property.extra_info = text(info);
    CORBA::Any any;
    any <<= property;
    return any;
}

void add_types(ServiceTypeRepository_ptr types) {
    ServiceTypeRepository::PropStructSeq props(2);
    props.length(2);
    props[0].name = CORBA::string_dup("name");
    props[0].value_type = CORBA::TypeCode::_duplicate(CORBA::_tc_string);
    props[0].mode = ServiceTypeRepository::PROP_MANDATORY_READONLY;
    props[1].name = CORBA::string_dup("queue");
    props[1].value_type = CORBA::TypeCode::_duplicate(CORBA::_tc_long);
    props[1].mode = ServiceTypeRepository::PROP_NORMAL;
    ServiceTypeRepository::ServiceTypeNameSeq none;
    const char *interface = "IDL:omg.org/CORBA/Object:1.0";
    types->add_type("Printer", interface, props, none);
    raises<ServiceTypeRepository::ServiceTypeExists>(
        [&] { types->add_type("Printer", interface, props, none); }, "a type was added twice");
    ServiceTypeRepository::ServiceTypeNameSeq bases(1);
    bases.length(1);
    bases[0] = CORBA::string_dup("Printer");
    ServiceTypeRepository::PropStructSeq further(1);
    further.length(1);
    further[0].name = CORBA::string_dup("inks");
    further[0].value_type = CORBA::TypeCode::_duplicate(CORBA::_tc_string);
    further[0].mode = ServiceTypeRepository::PROP_NORMAL;
    types->add_type("ColourPrinter", interface, further, bases);
    raises<ServiceTypeRepository::HasSubTypes>([&] { types->remove_type("Printer"); }, "a base was removed");
    raises<UnknownServiceType>([&] { types->describe_type("Scanner"); }, "a type is known that was not added");
    ServiceTypeRepository::TypeStruct_var described = types->fully_describe_type("ColourPrinter");
    ensure(described->props.length() == 3 && described->super_types.length() == 1, "the type has other properties");
    ServiceTypeRepository::SpecifiedServiceTypes all;
    all._d(CosTradingRepos::ServiceTypeRepository::all);
    ServiceTypeRepository::ServiceTypeNameSeq_var names = types->list_types(all);
    ensure(names->length() == 2, "there is another number of types");
}

struct Answer {
    OfferSeq_var offers;
    OfferIterator_var iterator;
    PolicyNameSeq_var limits;
};

Answer query(Lookup_ptr lookup, const char *type, const char *constraint, const char *preference,
             CORBA::ULong how_many = 100, const PolicySeq &policies = PolicySeq()) {
    Answer answer;
    Lookup::SpecifiedProps wanted;
    wanted._d(Lookup::all);
    lookup->query(type, constraint, preference, policies, wanted, how_many, answer.offers, answer.iterator, answer.limits);
    return answer;
}

std::string name_of(const Offer &offer) {
    for (CORBA::ULong i = 0; i < offer.properties.length(); i++) {
        const char *name;
        if (std::string(offer.properties[i].name) == "name" && (offer.properties[i].value >>= name)) return name;
    }
    return "";
}

void use_offers(Lookup_ptr lookup, CosTradingDynamic::DynamicPropEval_ptr evaluator, const Evaluator &servant) {
    Register_var reg = lookup->register_if();
    CORBA::String_var first = reg->_cxx_export(lookup, "Printer", properties("laser", number(7)));
    CORBA::String_var second = reg->_cxx_export(lookup, "ColourPrinter", properties("ink", number(1)));
    CORBA::String_var third = reg->_cxx_export(lookup, "Printer", properties("live", dynamic(evaluator, "")));
    CORBA::String_var broken = reg->_cxx_export(lookup, "Printer", properties("broken", dynamic(evaluator, "broken")));
    raises<MissingMandatoryProperty>([&] { reg->_cxx_export(lookup, "Printer", PropertySeq()); }, "a property is missing");
    raises<PropertyTypeMismatch>(
        [&] { reg->_cxx_export(lookup, "Printer", properties("x", text("long"))); }, "a value has another type");
    raises<Register::InvalidObjectRef>(
        [&] { reg->_cxx_export(CORBA::Object::_nil(), "Printer", properties("x", number(1))); }, "nil was exported");

    Answer answer = query(lookup, "Printer", "queue < 10", "min queue");
    ensure(answer.offers->length() == 3, "another number of offers matches");
    ensure(name_of(answer.offers[0u]) == "ink" && name_of(answer.offers[1u]) == "live" && name_of(answer.offers[2u]) == "laser",
           "the offers have another order");
    ensure(servant.calls >= 1, "the evaluator was not called");
    answer = query(lookup, "Printer", "name == 'broken' and queue < 10", "");
    ensure(answer.offers->length() == 0, "a property has a value whose evaluation failed");
    answer = query(lookup, "Printer", "name == 'broken'", "");
    ensure(answer.offers->length() == 1 && answer.offers[0u].properties.length() == 1, "the offer has other properties");

    answer = query(lookup, "Printer", "", "first", 1);
    ensure(answer.offers->length() == 1 && !CORBA::is_nil(answer.iterator), "there is no iterator");
    ensure(answer.iterator->max_left() == 3, "another number of offers is left");
    OfferSeq_var more;
    ensure(!answer.iterator->next_n(10, more) && more->length() == 3, "the iterator has other offers");
    answer.iterator->destroy();

    PolicySeq exact(1);
    exact.length(1);
    exact[0].name = CORBA::string_dup("exact_type_match");
    exact[0].value <<= CORBA::Any::from_boolean(true);
    answer = query(lookup, "Printer", "name == 'ink'", "", 10, exact);
    ensure(answer.offers->length() == 0, "a subtype matches exactly");
    exact[0].value <<= "yes";
    raises<Lookup::PolicyTypeMismatch>([&] { query(lookup, "Printer", "", "", 10, exact); }, "a policy has another type");
    raises<IllegalConstraint>([&] { query(lookup, "Printer", "queue <", ""); }, "half a constraint was accepted");
    raises<Lookup::IllegalPreference>([&] { query(lookup, "Printer", "", "least queue"); }, "a preference was accepted");

    PropertySeq changed(1);
    changed.length(1);
    changed[0].name = CORBA::string_dup("queue");
    changed[0].value = number(0);
    reg->modify(first, PropertyNameSeq(), changed);
    answer = query(lookup, "Printer", "queue == 0", "");
    ensure(answer.offers->length() == 1 && name_of(answer.offers[0u]) == "laser", "the change is not there");
    changed[0].name = CORBA::string_dup("name");
    changed[0].value = text("other");
    raises<Register::ReadonlyProperty>([&] { reg->modify(first, PropertyNameSeq(), changed); }, "a property was changed");
    Register::OfferInfo_var described = reg->describe(second);
    ensure(std::string(described->type) == "ColourPrinter", "the offer has another type");
    reg->withdraw(first);
    raises<UnknownOfferId>([&] { reg->withdraw(first); }, "an offer was withdrawn twice");
    reg->withdraw_using_constraint("Printer", "name == 'ink'");
    raises<Register::NoMatchingOffers>(
        [&] { reg->withdraw_using_constraint("Printer", "name == 'ink'"); }, "an offer was withdrawn twice");
    answer = query(lookup, "Printer", "", "");
    ensure(answer.offers->length() == 2, "another number of offers is left");
}

void use_links(Lookup_ptr lookup) {
    Link_var links = lookup->link_if();
    links->add_link("self", lookup, if_no_local, always);
    raises<Link::DuplicateLinkName>([&] { links->add_link("self", lookup, local_only, always); }, "a link was added twice");
    raises<Link::IllegalLinkName>([&] { links->add_link("", lookup, local_only, always); }, "a link has no name");
    raises<Link::DefaultFollowTooPermissive>(
        [&] { links->add_link("other", lookup, always, local_only); }, "a default is above the limit");
    raises<InvalidLookupRef>([&] { links->add_link("other", Lookup::_nil(), local_only, always); }, "a link leads to nil");
    Link::LinkInfo_var described = links->describe_link("self");
    ensure(described->def_pass_on_follow_rule == if_no_local && described->limiting_follow_rule == always, "other rules");
    ensure(!CORBA::is_nil(described->target_reg), "the linked trader has no Register");
    LinkNameSeq_var names = links->list_links();
    ensure(names->length() == 1 && std::string(names[0u]) == "self", "there are other links");
    // The query returns to this trader, which recognizes the id of the request.
    PolicySeq follow(1);
    follow.length(1);
    follow[0].name = CORBA::string_dup("link_follow_rule");
    follow[0].value <<= always;
    Answer answer = query(lookup, "Printer", "", "", 100, follow);
    ensure(answer.offers->length() == 2, "a cycle of links repeats offers");
    links->modify_link("self", local_only, local_only);
    links->remove_link("self");
    raises<Link::UnknownLinkName>([&] { links->remove_link("self"); }, "a link was removed twice");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
        poa->the_POAManager()->activate();
        PortableServer::Servant_var<Evaluator> servant = new Evaluator;
        PortableServer::ObjectId_var id = poa->activate_object(servant);
        CosTradingDynamic::DynamicPropEval_var evaluator = servant->_this();
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        Lookup_var lookup = Lookup::_narrow(object);
        ensure(!CORBA::is_nil(lookup), "the object is no Lookup");
        CORBA::Object_var repository = lookup->type_repos();
        ServiceTypeRepository_var types = ServiceTypeRepository::_narrow(repository);
        ensure(!CORBA::is_nil(types), "the trader has no repository of types");
        add_types(types);
        use_offers(lookup, evaluator, *servant);
        use_links(lookup);
        std::cout << "ok\n";
        orb->destroy();
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
    } catch (const CORBA::Exception &error) {
        std::cerr << error._name() << "\n";
    }
    return 1;
}
