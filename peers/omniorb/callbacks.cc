// `callbacks --serve` serves tests/interop/idl/callbacks.idl and calls its clients over their own connections; `callbacks --call REFERENCE` is
// such a client. Options for bidirectional connections: -ORBofferBiDirectionalGIOP 1 -ORBacceptBiDirectionalGIOP 1
// -ORBclientTransportRule "* bidir,tcp" -ORBserverTransportRule "* bidir,tcp".
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <unistd.h>

#include "callbacks.hh"

using namespace Callbacks;

namespace {

CORBA::ORB_var orb;

// An adapter whose objects are called over either side's connections.
PortableServer::POA_ptr both_ways() {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    CORBA::Any value;
    value <<= BiDirPolicy::BOTH;
    CORBA::PolicyList policies;
    policies.length(1);
    policies[0] = orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, value);
    return root->create_POA("both_ways", manager, policies);
}

// Shuts the ORB down in a thread of its own; later calls do nothing. A call that is made while the ORB is destroyed would throw.
void end() {
    static std::once_flag once;
    std::call_once(once, [] { std::thread([] { orb->shutdown(false); }).detach(); });
}

class DeskImpl : public POA_Callbacks::Desk {
public:
    CORBA::Long have_add(Bell_ptr who, CORBA::Long a, CORBA::Long b) override { return who->add(a, b); }
    Octets *have_echo(Bell_ptr who, const Octets &data) override { return who->echo(data); }
    char *have_declined(Bell_ptr who, const char *why) override {
        try {
            who->decline(why);
        } catch (const Declined &declined) {
            return CORBA::string_dup(declined.why);
        }
        return CORBA::string_dup("");
    }
    CORBA::Long have_rung(Bell_ptr who, CORBA::Long count) override {
        for (CORBA::Long number = 0; number < count; ++number) who->ring(number);
        return who->rung();
    }
    CORBA::Long recurse(Bell_ptr who, Desk_ptr own, CORBA::Long depth) override {
        return depth > 0 ? who->recurse(own, who, depth - 1) + 1 : 0;
    }
    void later(Bell_ptr who, CORBA::Long number) override {
        Bell_var bell = Bell::_duplicate(who);
        std::thread([bell, number] {
            try {
                bell->ring(number);
            } catch (const CORBA::SystemException &error) {
                std::cerr << "the bell cannot be rung: " << error._name() << std::endl;
            }
        }).detach();
    }
    CORBA::ULong opened() override { return 0; }
    void shutdown() override { end(); }
};

class BellImpl : public POA_Callbacks::Bell {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<CORBA::Long> numbers;

public:
    CORBA::Long add(CORBA::Long a, CORBA::Long b) override { return a + b; }
    Octets *echo(const Octets &data) override { return new Octets(data); }
    void decline(const char *why) override { throw Declined(why); }
    void ring(CORBA::Long number) override {
        std::lock_guard<std::mutex> lock(mutex);
        numbers.push_back(number);
        changed.notify_all();
    }
    // omniORB runs the one-ways of a connection in several threads: only their number is certain.
    CORBA::Long rung() override {
        std::lock_guard<std::mutex> lock(mutex);
        auto count = static_cast<CORBA::Long>(numbers.size());
        numbers.clear();
        return count;
    }
    CORBA::Long recurse(Desk_ptr other, Bell_ptr own, CORBA::Long depth) override {
        return depth > 0 ? other->recurse(own, other, depth - 1) + 1 : 0;
    }
    bool was_rung() {
        std::unique_lock<std::mutex> lock(mutex);
        bool was = changed.wait_for(lock, std::chrono::seconds(10), [this] { return !numbers.empty(); });
        numbers.clear();
        return was;
    }
};

void ensure(bool good, const char *what) {
    if (!good) throw std::runtime_error(what);
}

int call(const char *reference) {
    CORBA::Object_var object = orb->string_to_object(reference);
    Desk_var desk = Desk::_narrow(object);
    PortableServer::POA_var poa = both_ways();
    auto *servant = new BellImpl;
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    Bell_var bell = servant->_this();
    const std::vector<std::pair<const char *, std::function<void()>>> cases = {
        {"add",
         [&] {
             for (CORBA::Long number = 0; number < 100; ++number)
                 ensure(desk->have_add(bell, number, 1) == number + 1, "a wrong sum");
         }},
        {"echo",
         [&] {
             for (CORBA::ULong len : {0u, 1u, 1000u, 100000u, 1u << 20}) {
                 Octets data(len);
                 data.length(len);
                 for (CORBA::ULong i = 0; i < len; ++i) data[i] = static_cast<CORBA::Octet>(i % 251);
                 Octets_var back = desk->have_echo(bell, data);
                 ensure(back->length() == len, "another length");
                 ensure(!len || !std::memcmp(back->get_buffer(), data.get_buffer(), len), "other octets");
             }
         }},
        {"decline",
         [&] {
             CORBA::String_var why = desk->have_declined(bell, "too late");
             ensure(!std::strcmp(why, "too late"), "another reason");
         }},
        {"ring",
         [&] {
             // Calls that another thread has not received yet are counted the next time.
             CORBA::Long due = 0;
             for (CORBA::Long count : {0, 1, 200}) {
                 due += count - desk->have_rung(bell, count);
                 ensure(due >= 0, "rung too often");
             }
             while (servant->rung() != 0) std::this_thread::yield();
         }},
        {"nested",
         [&] {
             for (CORBA::Long depth : {0, 1, 2, 10}) ensure(desk->recurse(bell, desk, depth) == depth, "another depth");
         }},
        {"idle",
         [&] {
             desk->later(bell, 0);
             ensure(servant->was_rung(), "the bell was not rung");
         }},
        {"one_connection", [&] { ensure(desk->opened() == 0, "the server has opened a connection"); }},
    };
    int failed = 0;
    for (const auto &[name, run] : cases) {
        std::string what;
        try {
            run();
        } catch (const CORBA::SystemException &error) {
            what = std::string(error._name()) + " " + error.NP_minorString();
        } catch (const std::exception &error) {
            what = error.what();
        }
        if (what.empty()) {
            std::cout << "ok callbacks/" << name << std::endl;
        } else {
            std::cout << "FAIL callbacks/" << name << ": " << what << std::endl;
            ++failed;
        }
    }
    desk->shutdown();
    orb->destroy();
    return failed ? 1 : 0;
}

int serve() {
    PortableServer::POA_var poa = both_ways();
    auto *servant = new DeskImpl;
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    Desk_var desk = servant->_this();
    CORBA::String_var reference = orb->object_to_string(desk);
    std::cout << reference << std::endl;
    std::thread([] {
        char said[64];
        while (read(0, said, sizeof said) > 0) {
        }
        end();
    }).detach();
    orb->run();
    // The thread that has ended it may not have finished yet.
    orb->destroy();
    _exit(0); // the watcher may still block in its read
}

}  // namespace

int main(int argc, char **argv) {
    try {
        orb = CORBA::ORB_init(argc, argv);
        omniORB::setClientCallTimeout(10000);
        // An error is reported rather than tried again.
        omniORB::installTransientExceptionHandler(0, [](void *, CORBA::ULong, const CORBA::TRANSIENT &) -> CORBA::Boolean { return false; });
        if (argc == 2 && !std::strcmp(argv[1], "--serve")) return serve();
        if (argc == 3 && !std::strcmp(argv[1], "--call")) return call(argv[2]);
        std::cerr << "usage: callbacks --serve | --call REFERENCE [-ORB...]" << std::endl;
        return 2;
    } catch (const CORBA::Exception &e) {
        std::cerr << "callbacks: " << e._name() << std::endl;
        return 1;
    }
}
