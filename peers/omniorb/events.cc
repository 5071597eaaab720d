// Suppliers and consumers of a channel, which `events FACTORY NAME` creates by the interfaces of omniEvents. It runs against
// omniEvents and against Spandrel's event service, and destroys the channel at the end.
#include <chrono>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "omniEvents.hh"

using namespace CosEventChannelAdmin;
namespace comm = CosEventComm;

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

CORBA::Any number(CORBA::Long value) {
    CORBA::Any any;
    any <<= value;
    return any;
}

CORBA::Long number(const CORBA::Any &event) {
    CORBA::Long value = -1;
    ensure(event >>= value, "an event of another type");
    return value;
}

/// Records numbers.
class PushConsumer : public POA_CosEventComm::PushConsumer {
public:
    void push(const CORBA::Any &data) override {
        std::lock_guard<std::mutex> lock(mutex);
        numbers.push_back(number(data));
    }
    void disconnect_push_consumer() override {
        std::lock_guard<std::mutex> lock(mutex);
        disconnected = true;
    }
    bool has(std::vector<CORBA::Long> expected) {
        std::lock_guard<std::mutex> lock(mutex);
        return numbers == expected;
    }
    bool has_left() {
        std::lock_guard<std::mutex> lock(mutex);
        return disconnected;
    }

private:
    std::mutex mutex;
    std::vector<CORBA::Long> numbers;
    bool disconnected = false;
};

/// Has the events 10 and 11.
class PullSupplier : public POA_CosEventComm::PullSupplier {
public:
    CORBA::Any *pull() override {
        CORBA::Boolean has_event;
        CORBA::Any_var event = try_pull(has_event);
        if (!has_event) throw CORBA::TRANSIENT();
        return event._retn();
    }
    CORBA::Any *try_pull(CORBA::Boolean &has_event) override {
        std::lock_guard<std::mutex> lock(mutex);
        has_event = next < 12;
        return new CORBA::Any(number(next < 12 ? next++ : 0));
    }
    void disconnect_pull_supplier() override {}

private:
    std::mutex mutex;
    CORBA::Long next = 10;
};

CosNaming::Name key(const char *id, const char *kind) {
    CosNaming::Name name(1);
    name.length(1);
    name[0].id = CORBA::string_dup(id);
    name[0].kind = CORBA::string_dup(kind);
    return name;
}

CosLifeCycle::NameValuePair criterion(const char *name, const CORBA::Any &value) {
    CosLifeCycle::NameValuePair pair;
    pair.name = CORBA::string_dup(name);
    pair.value = value;
    return pair;
}

CosLifeCycle::Criteria criteria(const char *name) {
    CosLifeCycle::Criteria all(5);
    all.length(5);
    const char *names[] = {"CyclePeriod_ns", "MaxQueueLength", "MaxNumProxies", "PullRetryPeriod_ms"};
    CORBA::ULong numbers[] = {20000000, 100, 10, 50};
    for (CORBA::ULong i = 0; i < 4; ++i) {
        CORBA::Any value;
        value <<= numbers[i];
        all[i] = criterion(names[i], value);
    }
    CORBA::Any text;
    text <<= name;
    all[4] = criterion("InsName", text);
    return all;
}

void use(omniEvents::EventChannelFactory_ptr factory, const char *name, CORBA::ORB_ptr orb, const std::string &address) {
    CosNaming::Name of_channels = key("EventChannel", "object interface");
    ensure(factory->supports(of_channels), "the factory does not support event channels");
    ensure(!factory->supports(key("Other", "")), "the factory supports others");
    raises<CosLifeCycle::NoFactory>([&] { factory->create_object(key("Other", ""), CosLifeCycle::Criteria()); }, "another key");
    ensure(factory->is_alive(), "the factory is not alive");
    CORBA::Object_var object = factory->create_object(of_channels, criteria(name));
    EventChannel_var channel = EventChannel::_narrow(object);
    ensure(!CORBA::is_nil(channel), "no channel was created");
    raises<CosLifeCycle::InvalidCriteria>(
        [&] { CORBA::Object_var again = factory->create_object(of_channels, criteria(name)); }, "a name was used twice");
    CosLifeCycle::Criteria wrong(1);
    wrong.length(1);
    CORBA::Any text;
    text <<= "many";
    wrong[0] = criterion("MaxQueueLength", text);
    raises<CosLifeCycle::InvalidCriteria>(
        [&] { CORBA::Object_var other = factory->create_object(of_channels, wrong); }, "a text was a number");
    // The name of the channel is its key.
    CORBA::Object_var by_name = orb->string_to_object(("corbaloc::" + address + "/" + name).c_str());
    EventChannel_var same = EventChannel::_narrow(by_name);
    ensure(!CORBA::is_nil(same), "the channel has no key");

    ConsumerAdmin_var consumers = same->for_consumers();
    SupplierAdmin_var suppliers = same->for_suppliers();
    PortableServer::Servant_var<PushConsumer> recorder = new PushConsumer;
    comm::PushConsumer_var pushed = recorder->_this();
    ProxyPushSupplier_var push_proxy = consumers->obtain_push_supplier();
    raises<CORBA::BAD_PARAM>([&] { push_proxy->connect_push_consumer(comm::PushConsumer::_nil()); }, "nil was connected");
    push_proxy->connect_push_consumer(pushed);
    raises<AlreadyConnected>([&] { push_proxy->connect_push_consumer(pushed); }, "a consumer was connected twice");
    ProxyPullSupplier_var pulled = consumers->obtain_pull_supplier();
    pulled->connect_pull_consumer(comm::PullConsumer::_nil());
    raises<AlreadyConnected>(
        [&] { pulled->connect_pull_consumer(comm::PullConsumer::_nil()); }, "a pull consumer was connected twice");

    ProxyPushConsumer_var pushes = suppliers->obtain_push_consumer();
    pushes->connect_push_supplier(comm::PushSupplier::_nil());
    for (CORBA::Long n = 1; n <= 3; ++n) pushes->push(number(n));
    wait([&] { return recorder->has({1, 2, 3}); }, "pushed events did not arrive");
    for (CORBA::Long n = 1; n <= 3; ++n) {
        CORBA::Any_var event = pulled->pull();
        ensure(number(event.in()) == n, "another event was pulled");
    }
    CORBA::Boolean has_event = true;
    CORBA::Any_var none = pulled->try_pull(has_event);
    ensure(!has_event, "there are further events");

    PortableServer::Servant_var<PullSupplier> source = new PullSupplier;
    comm::PullSupplier_var supplier = source->_this();
    ProxyPullConsumer_var pull_proxy = suppliers->obtain_pull_consumer();
    raises<CORBA::BAD_PARAM>([&] { pull_proxy->connect_pull_supplier(comm::PullSupplier::_nil()); }, "nil was connected");
    pull_proxy->connect_pull_supplier(supplier);
    wait([&] { return recorder->has({1, 2, 3, 10, 11}); }, "events of the pull supplier did not arrive");
    pull_proxy->disconnect_pull_consumer();
    pushes->disconnect_push_consumer();
    channel->destroy();
    wait([&] { return recorder->has_left(); }, "the consumer got no notice of the end");
    wait([&] {
        try {
            return static_cast<bool>(same->_non_existent());
        } catch (const CORBA::SystemException &) {
            return true;
        }
    }, "the channel is there after its end");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
        PortableServer::POAManager_var manager = poa->the_POAManager();
        manager->activate();
        std::string address = argv[1];
        CORBA::Object_var object = orb->string_to_object(("corbaloc::" + address + "/omniEvents").c_str());
        omniEvents::EventChannelFactory_var factory = omniEvents::EventChannelFactory::_narrow(object);
        ensure(!CORBA::is_nil(factory), "the object is no factory of event channels");
        use(factory, argv[2], orb, address);
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
