// Suppliers, consumers, filters and properties of a notification channel, which `notifications ADDRESS` creates by the factory
// of the service at the address, and destroys at the end. The stubs are those of omniORB's own IDL.
#include <chrono>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "CosNotifyChannelAdmin.hh"

namespace nt = CosNotification;
namespace comm = CosNotifyComm;
namespace filters = CosNotifyFilter;
using namespace CosNotifyChannelAdmin;

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

template <class Condition> void wait(Condition condition, const char *what) {
    for (int attempt = 0; attempt < 6000; ++attempt) {
        if (condition()) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw std::runtime_error(what);
}

nt::StructuredEvent event(const char *name, CORBA::Long level, CORBA::Short priority) {
    nt::StructuredEvent event;
    event.header.fixed_header.event_type.domain_name = CORBA::string_dup("Plant");
    event.header.fixed_header.event_type.type_name = CORBA::string_dup("Alarm");
    event.header.fixed_header.event_name = CORBA::string_dup(name);
    event.header.variable_header.length(1);
    event.header.variable_header[0].name = CORBA::string_dup(nt::Priority);
    event.header.variable_header[0].value <<= priority;
    event.filterable_data.length(1);
    event.filterable_data[0].name = CORBA::string_dup("level");
    event.filterable_data[0].value <<= level;
    event.remainder_of_body <<= name;
    return event;
}

using Names = std::vector<std::string>;

/// Records the names of events, and the event types that are offered.
class Recorder {
public:
    void record(const nt::StructuredEvent &event) {
        const char *body = nullptr;
        ensure(event.remainder_of_body >>= body, "the body is no string");
        ensure(std::string(body) == event.header.fixed_header.event_name.in(), "the body of another event");
        std::lock_guard<std::mutex> lock(mutex);
        names.push_back(body);
    }
    void offer(const nt::EventTypeSeq &added) {
        std::lock_guard<std::mutex> lock(mutex);
        for (CORBA::ULong i = 0; i < added.length(); ++i) offers.push_back(added[i].type_name.in());
    }
    void leave() {
        std::lock_guard<std::mutex> lock(mutex);
        disconnected = true;
    }
    bool has(const Names &expected) {
        std::lock_guard<std::mutex> lock(mutex);
        return names == expected;
    }
    bool was_offered(const Names &expected) {
        std::lock_guard<std::mutex> lock(mutex);
        return offers == expected;
    }
    bool has_left() {
        std::lock_guard<std::mutex> lock(mutex);
        return disconnected;
    }

private:
    std::mutex mutex;
    Names names, offers;
    bool disconnected = false;
};

class StructuredConsumer : public POA_CosNotifyComm::StructuredPushConsumer, public Recorder {
public:
    void push_structured_event(const nt::StructuredEvent &event) override { record(event); }
    void offer_change(const nt::EventTypeSeq &added, const nt::EventTypeSeq &) override { offer(added); }
    void disconnect_structured_push_consumer() override { leave(); }
};

class SequenceConsumer : public POA_CosNotifyComm::SequencePushConsumer, public Recorder {
public:
    void push_structured_events(const nt::EventBatch &events) override {
        ensure(events.length() <= 2, "a batch is larger than MaximumBatchSize");
        for (CORBA::ULong i = 0; i < events.length(); ++i) record(events[i]);
    }
    void offer_change(const nt::EventTypeSeq &added, const nt::EventTypeSeq &) override { offer(added); }
    void disconnect_sequence_push_consumer() override { leave(); }
};

template <class Value> nt::Property property(const char *name, Value value) {
    nt::Property property;
    property.name = CORBA::string_dup(name);
    property.value <<= value;
    return property;
}

nt::PropertySeq properties(std::vector<nt::Property> list) {
    nt::PropertySeq sequence;
    sequence.length(list.size());
    for (CORBA::ULong i = 0; i < list.size(); ++i) sequence[i] = list[i];
    return sequence;
}

filters::ConstraintExpSeq constraints(const char *type, const char *text) {
    filters::ConstraintExpSeq list;
    list.length(1);
    list[0].event_types.length(1);
    list[0].event_types[0].domain_name = CORBA::string_dup("*");
    list[0].event_types[0].type_name = CORBA::string_dup(type);
    list[0].constraint_expr = CORBA::string_dup(text);
    return list;
}

template <class Proxy, class Reference> typename Proxy::_var_type narrow(Reference reference) {
    typename Proxy::_var_type proxy = Proxy::_narrow(reference);
    ensure(!CORBA::is_nil(proxy), "a proxy of another interface");
    return proxy;
}

void use(EventChannelFactory_ptr factory) {
    ChannelID id = 0;
    raises<nt::UnsupportedQoS>(
        [&] {
            EventChannel_var none =
                factory->create_channel(properties({property<CORBA::Short>("Colour", 1)}), nt::AdminProperties(), id);
        },
        "an unknown property was accepted");
    EventChannel_var channel = factory->create_channel(
        properties({property<CORBA::Short>(nt::OrderPolicy, nt::PriorityOrder)}),
        properties({property<CORBA::Long>(nt::MaxConsumers, 3)}), id);
    EventChannel_var same = factory->get_event_channel(id);
    ensure(same->_is_equivalent(channel), "another channel has the id");
    raises<ChannelNotFound>([&] { EventChannel_var none = factory->get_event_channel(id + 1000); }, "a channel without id");
    try {
        channel->set_qos(properties({property<CORBA::Short>(nt::OrderPolicy, 77)}));
        throw std::runtime_error("an unknown order was accepted");
    } catch (const nt::UnsupportedQoS &error) {
        CORBA::Short high = 0;
        ensure(error.qos_err.length() == 1 && error.qos_err[0].code == nt::UNSUPPORTED_VALUE, "another error");
        ensure((error.qos_err[0].available_range.high_val >>= high) && high == nt::DeadlineOrder, "another range");
    }

    AdminID admin_id = 0;
    ConsumerAdmin_var consumers = channel->new_for_consumers(AND_OP, admin_id);
    ensure(consumers->MyID() == admin_id && consumers->MyOperator() == AND_OP, "another administrator");
    SupplierAdmin_var suppliers = channel->default_supplier_admin();
    ProxyID proxy_id = 0;

    // A consumer of structured events with a filter.
    PortableServer::Servant_var<StructuredConsumer> structured = new StructuredConsumer;
    comm::StructuredPushConsumer_var consumer = structured->_this();
    ProxySupplier_var obtained = consumers->obtain_notification_push_supplier(STRUCTURED_EVENT, proxy_id);
    ensure(obtained->MyType() == PUSH_STRUCTURED, "a proxy of another type");
    auto pushed = narrow<StructuredProxyPushSupplier>(obtained.in());
    filters::FilterFactory_var factory_of_filters = channel->default_filter_factory();
    raises<filters::InvalidGrammar>(
        [&] { filters::Filter_var none = factory_of_filters->create_filter("SQL"); }, "an unknown grammar was accepted");
    filters::Filter_var filter = factory_of_filters->create_filter("EXTENDED_TCL");
    raises<filters::InvalidConstraint>(
        [&] { filters::ConstraintInfoSeq_var none = filter->add_constraints(constraints("*", "$level ==")); },
        "an incomplete constraint was accepted");
    filters::ConstraintInfoSeq_var infos = filter->add_constraints(constraints("Alarm", "$.filterable_data(level) > 2"));
    ensure(infos->length() == 1, "the constraint has no id");
    ensure(filter->match_structured(event("x", 3, 0)) && !filter->match_structured(event("x", 2, 0)), "the filter is wrong");
    filters::FilterID filter_id = pushed->add_filter(filter);
    filters::Filter_var added = pushed->get_filter(filter_id);
    ensure(added->_is_equivalent(filter), "another filter has the id");
    pushed->connect_structured_push_consumer(consumer);
    raises<CosEventChannelAdmin::AlreadyConnected>(
        [&] { pushed->connect_structured_push_consumer(consumer); }, "a consumer was connected twice");

    // A consumer of sequences, whose events wait in the order of their priorities.
    PortableServer::Servant_var<SequenceConsumer> sequences = new SequenceConsumer;
    comm::SequencePushConsumer_var sequence_consumer = sequences->_this();
    obtained = consumers->obtain_notification_push_supplier(SEQUENCE_EVENT, proxy_id);
    auto batches = narrow<SequenceProxyPushSupplier>(obtained.in());
    batches->set_qos(properties({property<CORBA::Long>(nt::MaximumBatchSize, 2)}));
    batches->connect_sequence_push_consumer(sequence_consumer);
    batches->suspend_connection();
    raises<ConnectionAlreadyInactive>([&] { batches->suspend_connection(); }, "a connection was suspended twice");
    obtained = consumers->obtain_notification_pull_supplier(ANY_EVENT, proxy_id);
    auto anys = narrow<ProxyPullSupplier>(obtained.in());
    anys->connect_any_pull_consumer(CosEventComm::PullConsumer::_nil());
    raises<AdminLimitExceeded>(
        [&] { ProxySupplier_var none = consumers->obtain_notification_pull_supplier(ANY_EVENT, proxy_id); },
        "there are more consumers than MaxConsumers");

    ProxyConsumer_var obtained_consumer = suppliers->obtain_notification_push_consumer(STRUCTURED_EVENT, proxy_id);
    auto pushes = narrow<StructuredProxyPushConsumer>(obtained_consumer.in());
    pushes->connect_structured_push_supplier(comm::StructuredPushSupplier::_nil());
    nt::EventTypeSeq types;
    types.length(1);
    types[0].domain_name = CORBA::string_dup("Plant");
    types[0].type_name = CORBA::string_dup("Alarm");
    pushes->offer_change(types, nt::EventTypeSeq());
    wait([&] { return structured->was_offered({"Alarm"}) && sequences->was_offered({"Alarm"}); }, "no offer arrived");
    pushes->push_structured_event(event("low", 1, 0));
    pushes->push_structured_event(event("high", 9, 5));
    pushes->push_structured_event(event("middle", 5, -5));
    wait([&] { return structured->has({"high", "middle"}); }, "filtered events did not arrive");
    batches->resume_connection();
    wait([&] { return sequences->has({"high", "low", "middle"}); }, "batches did not arrive by priority");
    for (const char *name : {"high", "low", "middle"}) {
        CORBA::Any_var value = anys->pull();
        const nt::StructuredEvent *content = nullptr;
        ensure(value.in() >>= content, "the any has no structured event");
        ensure(std::string(content->header.fixed_header.event_name) == name, "another event was pulled");
    }
    CORBA::Boolean has_event = true;
    CORBA::Any_var none = anys->try_pull(has_event);
    ensure(!has_event, "there are further events");
    channel->destroy();
    wait([&] { return structured->has_left() && sequences->has_left(); }, "the consumers got no notice of the end");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
        PortableServer::POAManager_var manager = poa->the_POAManager();
        manager->activate();
        std::string url = std::string("corbaloc::") + argv[1] + "/NotificationService";
        CORBA::Object_var object = orb->string_to_object(url.c_str());
        EventChannelFactory_var factory = EventChannelFactory::_narrow(object);
        ensure(!CORBA::is_nil(factory), "the object is no factory of notification channels");
        use(factory);
        std::cout << "ok\n";
        orb->destroy();
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
    } catch (const CORBA::SystemException &error) {
        std::cerr << error._name() << " " << error.minor() << "\n";
    } catch (const CORBA::Exception &error) {
        std::cerr << error._name() << "\n";
    }
    return 1;
}
