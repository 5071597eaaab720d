package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.TypeCode;
import org.omg.CosTrading.Admin;
import org.omg.CosTrading.FollowOption;
import org.omg.CosTrading.FollowOptionHelper;
import org.omg.CosTrading.IllegalConstraint;
import org.omg.CosTrading.Link;
import org.omg.CosTrading.LinkPackage.DefaultFollowTooPermissive;
import org.omg.CosTrading.LinkPackage.DuplicateLinkName;
import org.omg.CosTrading.LinkPackage.UnknownLinkName;
import org.omg.CosTrading.Lookup;
import org.omg.CosTrading.LookupHelper;
import org.omg.CosTrading.LookupPOA;
import org.omg.CosTrading.LookupPackage.HowManyProps;
import org.omg.CosTrading.LookupPackage.IllegalPreference;
import org.omg.CosTrading.LookupPackage.PolicyTypeMismatch;
import org.omg.CosTrading.LookupPackage.SpecifiedProps;
import org.omg.CosTrading.MissingMandatoryProperty;
import org.omg.CosTrading.Offer;
import org.omg.CosTrading.OfferIteratorHolder;
import org.omg.CosTrading.OfferSeqHolder;
import org.omg.CosTrading.Policy;
import org.omg.CosTrading.PolicyNameSeqHolder;
import org.omg.CosTrading.Property;
import org.omg.CosTrading.PropertyTypeMismatch;
import org.omg.CosTrading.Proxy;
import org.omg.CosTrading.Register;
import org.omg.CosTrading.RegisterPackage.NoMatchingOffers;
import org.omg.CosTrading.RegisterPackage.ProxyOfferId;
import org.omg.CosTrading.RegisterPackage.ReadonlyProperty;
import org.omg.CosTrading.UnknownOfferId;
import org.omg.CosTrading.UnknownServiceType;
import org.omg.CosTradingDynamic.DPEvalFailure;
import org.omg.CosTradingDynamic.DynamicProp;
import org.omg.CosTradingDynamic.DynamicPropEval;
import org.omg.CosTradingDynamic.DynamicPropEvalHelper;
import org.omg.CosTradingDynamic.DynamicPropEvalPOA;
import org.omg.CosTradingDynamic.DynamicPropHelper;
import org.omg.CosTradingRepos.ServiceTypeRepository;
import org.omg.CosTradingRepos.ServiceTypeRepositoryHelper;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.AlreadyMasked;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.HasSubTypes;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.ListOption;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.PropStruct;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.PropertyMode;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.ServiceTypeExists;
import org.omg.CosTradingRepos.ServiceTypeRepositoryPackage.SpecifiedServiceTypes;

/**
 * Uses the trader that is the reference of `--call`: its types, offers, iterators, policies, links and proxy offers. This process
 * has an evaluator of dynamic properties, and a `Lookup` that the trader asks by a link and by a proxy offer.
 */
final class Trading {
    private static final String OBJECT = "IDL:omg.org/CORBA/Object:1.0";

    private final Broker broker;
    private final ORB orb;
    private final Lookup lookup;
    private final Register register;

    private Trading(Broker broker, Lookup lookup) {
        this.broker = broker;
        orb = broker.orb;
        this.lookup = lookup;
        register = lookup.register_if();
    }

    static int call(Options options) throws Exception {
        Broker broker = new Broker(options);
        Lookup lookup = LookupHelper.narrow(broker.orb.string_to_object(options.reference));
        Trading trading = new Trading(broker, lookup);
        Suite suite = new Suite(options.only);
        suite.run("trading/attributes", trading::attributes);
        suite.run("trading/types", trading::types);
        suite.run("trading/offers", trading::offers);
        suite.run("trading/iterators", trading::iterators);
        suite.run("trading/policies", trading::policies);
        suite.run("trading/modify", trading::modify);
        suite.run("trading/dynamic", trading::dynamic);
        suite.run("trading/links", trading::links);
        suite.run("trading/linked_trader", trading::linkedTrader);
        suite.run("trading/proxies", trading::proxies);
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

    private TypeCode type(TCKind kind) {
        return kind == TCKind.tk_string ? orb.create_string_tc(0) : orb.get_primitive_tc(kind);
    }

    private Property[] properties(String name, Any queue) {
        return new Property[] {new Property("name", any(name)), new Property("queue", queue)};
    }

    private String export(String serviceType, String name, Any queue) throws Exception {
        return register.export(lookup, serviceType, properties(name, queue));
    }

    private final class Answer {
        final OfferSeqHolder offers = new OfferSeqHolder();
        final OfferIteratorHolder iterator = new OfferIteratorHolder();
        final PolicyNameSeqHolder limits = new PolicyNameSeqHolder();

        Answer(String serviceType, String constraint, String preference, int howMany, Policy... policies) throws Exception {
            SpecifiedProps all = new SpecifiedProps();
            all.__default(HowManyProps.all);
            lookup.query(serviceType, constraint, preference, policies, all, howMany, offers, iterator, limits);
        }

        List<String> names() {
            return Trading.names(offers.value);
        }
    }

    private static List<String> names(Offer[] offers) {
        List<String> names = new ArrayList<>();
        for (Offer offer : offers) {
            for (Property property : offer.properties) {
                if (property.name.equals("name")) names.add(property.value.extract_string());
            }
        }
        return names;
    }

    private List<String> query(String constraint, String preference, Policy... policies) throws Exception {
        return new Answer("Printer", constraint, preference, 100, policies).names();
    }

    private void attributes() throws Exception {
        expect(lookup.supports_dynamic_properties() && lookup.supports_modifiable_properties() && lookup.supports_proxy_offers(),
            "something is not supported");
        expect(lookup.def_return_card() <= lookup.max_return_card(), "a default is above its limit");
        equal("the default of its lookup_if", lookup.lookup_if().def_return_card(), lookup.def_return_card());
        Admin admin = lookup.admin_if();
        int before = admin.set_def_return_card(50);
        equal("def_return_card", lookup.def_return_card(), 50);
        equal("the former value", admin.set_def_return_card(before), 50);
    }

    private void types() throws Exception {
        ServiceTypeRepository types = ServiceTypeRepositoryHelper.narrow(lookup.type_repos());
        PropStruct[] props = {
            new PropStruct("name", type(TCKind.tk_string), PropertyMode.PROP_MANDATORY_READONLY),
            new PropStruct("queue", type(TCKind.tk_long), PropertyMode.PROP_NORMAL)};
        types.add_type("Printer", OBJECT, props, new String[0]);
        raises(ServiceTypeExists.class, () -> types.add_type("Printer", OBJECT, props, new String[0]));
        PropStruct[] more = {new PropStruct("inks", type(TCKind.tk_string), PropertyMode.PROP_NORMAL)};
        types.add_type("ColourPrinter", OBJECT, more, new String[] {"Printer"});
        raises(HasSubTypes.class, () -> types.remove_type("Printer"));
        raises(UnknownServiceType.class, () -> types.describe_type("Scanner"));
        equal("properties", types.fully_describe_type("ColourPrinter").props.length, 3);
        expect(types.fully_describe_type("Printer").props[1].value_type.equal(type(TCKind.tk_long)), "it has another type");
        SpecifiedServiceTypes every = new SpecifiedServiceTypes();
        every.__default(ListOption.all);
        equal("types", new java.util.TreeSet<>(Arrays.asList(types.list_types(every))).toString(), "[ColourPrinter, Printer]");
        SpecifiedServiceTypes since = new SpecifiedServiceTypes();
        since.incarnation(types.incarnation());
        equal("new types", types.list_types(since).length, 0);
        types.mask_type("ColourPrinter");
        raises(AlreadyMasked.class, () -> types.mask_type("ColourPrinter"));
        raises(UnknownServiceType.class, () -> export("ColourPrinter", "masked", any(1)));
        types.unmask_type("ColourPrinter");
    }

    private void offers() throws Exception {
        export("Printer", "laser", any(7));
        export("ColourPrinter", "ink", any(1));
        export("Printer", "gr\u00fcn", any(3));
        raises(MissingMandatoryProperty.class, () -> register.export(lookup, "Printer", new Property[0]));
        raises(PropertyTypeMismatch.class, () -> export("Printer", "x", any("long")));
        equal("by queue", query("queue < 10", "min queue"), Arrays.asList("ink", "gr\u00fcn", "laser"));
        equal("by name", query("name == 'gr\u00fcn' and exist queue", ""), Arrays.asList("gr\u00fcn"));
        equal("a part of a name", query("'as' ~ name", ""), Arrays.asList("laser"));
        raises(IllegalConstraint.class, () -> query("queue <", ""));
        raises(IllegalPreference.class, () -> query("", "least queue"));
        Answer answer = new Answer("Printer", "name == 'laser'", "", 1);
        expect(answer.offers.value[0].reference._is_equivalent(lookup), "the offer has another object");
        expect(answer.iterator.value == null, "there is an iterator over nothing");
    }

    private void iterators() throws Exception {
        Answer answer = new Answer("Printer", "", "min queue", 1);
        equal("the first", answer.names(), Arrays.asList("ink"));
        equal("left", answer.iterator.value.max_left(), 2);
        OfferSeqHolder more = new OfferSeqHolder();
        expect(answer.iterator.value.next_n(1, more), "it ends early");
        expect(!answer.iterator.value.next_n(10, more), "it has no end");
        equal("the last", names(more.value), Arrays.asList("laser"));
        answer.iterator.value.destroy();
    }

    private void policies() throws Exception {
        Any yes = orb.create_any();
        yes.insert_boolean(true);
        equal("exactly", query("name == 'ink'", "", new Policy("exact_type_match", yes)), Arrays.asList());
        Any one = orb.create_any();
        one.insert_ulong(1);
        Answer answer = new Answer("Printer", "", "min queue", 100, new Policy("return_card", one));
        equal("offers", answer.names(), Arrays.asList("ink"));
        equal("limits", Arrays.asList(answer.limits.value), Arrays.asList("return_card"));
        raises(PolicyTypeMismatch.class, () -> query("", "", new Policy("return_card", any("one"))));
    }

    private void modify() throws Exception {
        String id = export("Printer", "changed", any(70));
        register.modify(id, new String[0], new Property[] {new Property("queue", any(0))});
        equal("changed", query("queue == 0", ""), Arrays.asList("changed"));
        raises(ReadonlyProperty.class,
            () -> register.modify(id, new String[0], new Property[] {new Property("name", any("other"))}));
        equal("the type", register.describe(id).type, "Printer");
        register.withdraw(id);
        raises(UnknownOfferId.class, () -> register.withdraw(id));
        export("Printer", "withdrawn", any(71));
        register.withdraw_using_constraint("Printer", "queue == 71");
        raises(NoMatchingOffers.class, () -> register.withdraw_using_constraint("Printer", "queue == 71"));
    }

    /** Answers 2 for each property, and fails with the extra information `broken`. */
    private final class Evaluator extends DynamicPropEvalPOA {
        final AtomicInteger calls = new AtomicInteger();

        @Override
        public Any evalDP(String name, TypeCode type, Any extra) throws DPEvalFailure {
            if (extra.extract_string().equals("broken")) throw new DPEvalFailure(name, type, extra);
            calls.incrementAndGet();
            return any(2);
        }
    }

    private void dynamic() throws Exception {
        Evaluator evaluator = new Evaluator();
        DynamicPropEval object = DynamicPropEvalHelper.narrow(broker.activate(evaluator));
        List<String> ids = new ArrayList<>();
        for (String name : new String[] {"live", "broken"}) {
            Any queue = orb.create_any();
            DynamicPropHelper.insert(queue, new DynamicProp(object, type(TCKind.tk_long), any(name)));
            ids.add(export("Printer", name, queue));
        }
        equal("by queue", query("queue < 3", "min queue"), Arrays.asList("ink", "live"));
        expect(evaluator.calls.get() >= 1, "the evaluator was not called");
        equal("without a value", query("name == 'broken' and queue < 3", ""), Arrays.asList());
        // `exist` evaluates nothing.
        equal("the property", query("name == 'broken' and exist queue", ""), Arrays.asList("broken"));
        for (String id : ids) register.withdraw(id);
    }

    private Policy always() {
        Any always = orb.create_any();
        FollowOptionHelper.insert(always, FollowOption.always);
        return new Policy("link_follow_rule", always);
    }

    private void links() throws Exception {
        Link links = lookup.link_if();
        links.add_link("self", lookup, FollowOption.if_no_local, FollowOption.always);
        raises(DuplicateLinkName.class, () -> links.add_link("self", lookup, FollowOption.local_only, FollowOption.always));
        raises(DefaultFollowTooPermissive.class,
            () -> links.add_link("other", lookup, FollowOption.always, FollowOption.local_only));
        equal("the rule", links.describe_link("self").def_pass_on_follow_rule, FollowOption.if_no_local);
        // The query returns to the trader, which recognizes the id of the request.
        equal("a cycle", query("", "min queue", always()), Arrays.asList("ink", "gr\u00fcn", "laser"));
        links.remove_link("self");
        raises(UnknownLinkName.class, () -> links.remove_link("self"));
    }

    /** A trader with one offer, which keeps the constraint and the policies of the last query. */
    private final class Branch extends LookupPOA {
        volatile String constraint = "";
        volatile List<String> policies = new ArrayList<>();

        @Override
        public void query(String serviceType, String constraint, String preference, Policy[] policies, SpecifiedProps desired,
                int howMany, OfferSeqHolder offers, OfferIteratorHolder iterator, PolicyNameSeqHolder limits) {
            this.constraint = constraint;
            List<String> names = new ArrayList<>();
            for (Policy policy : policies) names.add(policy.name);
            this.policies = names;
            offers.value = new Offer[] {new Offer(lookup, properties("branch", any(2)))};
            limits.value = new String[0];
        }

        @Override public Lookup lookup_if() { return null; }
        @Override public Register register_if() { return null; }
        @Override public Link link_if() { return null; }
        @Override public Proxy proxy_if() { return null; }
        @Override public Admin admin_if() { return null; }
        @Override public boolean supports_modifiable_properties() { return false; }
        @Override public boolean supports_dynamic_properties() { return false; }
        @Override public boolean supports_proxy_offers() { return false; }
        @Override public org.omg.CORBA.Object type_repos() { return null; }
        @Override public int def_search_card() { return 100; }
        @Override public int max_search_card() { return 100; }
        @Override public int def_match_card() { return 100; }
        @Override public int max_match_card() { return 100; }
        @Override public int def_return_card() { return 100; }
        @Override public int max_return_card() { return 100; }
        @Override public int max_list() { return 100; }
        @Override public int def_hop_count() { return 5; }
        @Override public int max_hop_count() { return 5; }
        @Override public FollowOption def_follow_policy() { return FollowOption.always; }
        @Override public FollowOption max_follow_policy() { return FollowOption.always; }
    }

    private void linkedTrader() throws Exception {
        Branch branch = new Branch();
        Lookup object = LookupHelper.narrow(broker.activate(branch));
        Link links = lookup.link_if();
        links.add_link("branch", object, FollowOption.always, FollowOption.always);
        equal("merged", query("queue < 5", "min queue", always()), Arrays.asList("ink", "branch", "gr\u00fcn"));
        equal("the constraint", branch.constraint, "queue < 5");
        expect(branch.policies.contains("hop_count") && branch.policies.contains("request_id"),
            "the policies of the linked query are " + branch.policies);
        Any none = orb.create_any();
        none.insert_ulong(0);
        equal("without hops", query("queue < 5", "min queue", always(), new Policy("hop_count", none)),
            Arrays.asList("ink", "gr\u00fcn"));
        links.remove_link("branch");
    }

    private void proxies() throws Exception {
        Branch branch = new Branch();
        Lookup object = LookupHelper.narrow(broker.activate(branch));
        Proxy proxies = lookup.proxy_if();
        String id = proxies.export_proxy(object, "Printer", properties("proxy", any(4)), false, "($*) and queue != $(queue)",
            new Policy[0]);
        raises(ProxyOfferId.class, () -> register.describe(id));
        equal("merged", query("queue < 5", "min queue"), Arrays.asList("ink", "branch", "gr\u00fcn"));
        equal("the constraint", branch.constraint, "(queue < 5) and queue != 4");
        equal("the recipe", proxies.describe_proxy(id).recipe, "($*) and queue != $(queue)");
        proxies.withdraw_proxy(id);
        equal("afterwards", query("queue < 5", "min queue"), Arrays.asList("ink", "gr\u00fcn"));
    }
}
