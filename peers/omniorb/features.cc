// `features --serve` serves tests/interop/idl/features.idl, and restarts on request; `features --call REFERENCE [--only PREFIX]` calls a
// server of it. A reference is located before its first call, as omniORB does by itself.
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

#include "features.hh"
#include <omniORB4/omniInterceptors.h>
#include <omniORB4/giopEndpoint.h>
#include <omniORB4/internal/giopStrand.h>
#include <omniORB4/internal/giopStream.h>
#include <omniORB4/internal/GIOP_S.h>

using namespace Features;

namespace {

// The service contexts that the interceptors of both sides add and read.

constexpr CORBA::ULong asked = 0x53500101, answered = 0x53500102;
std::string said, returned;
thread_local std::string heard_now;

std::string content(const IOP::ServiceContextList &contexts, CORBA::ULong id) {
    for (CORBA::ULong i = 0; i < contexts.length(); ++i) {
        const auto &data = contexts[i].context_data;
        if (contexts[i].context_id == id) return std::string(reinterpret_cast<const char *>(data.get_buffer()), data.length());
    }
    return "";
}

void add(IOP::ServiceContextList &contexts, CORBA::ULong id, const std::string &text) {
    CORBA::ULong n = contexts.length();
    contexts.length(n + 1);
    contexts[n].context_id = id;
    contexts[n].context_data.length(static_cast<CORBA::ULong>(text.size()));
    std::memcpy(contexts[n].context_data.get_buffer(), text.data(), text.size());
}

CORBA::Boolean send_request(omni::omniInterceptors::clientSendRequest_T::info_T &info) {
    if (!said.empty() && !std::strcmp(info.operation(), "heard")) add(info.service_contexts, asked, said);
    return true;
}
CORBA::Boolean receive_reply(omni::omniInterceptors::clientReceiveReply_T::info_T &info) {
    returned = content(info.service_contexts, answered);
    return true;
}
CORBA::Boolean receive_request(omni::omniInterceptors::serverReceiveRequest_T::info_T &info) {
    heard_now = content(info.giop_s.service_contexts(), asked);
    return true;
}
CORBA::Boolean send_reply(omni::omniInterceptors::serverSendReply_T::info_T &info) {
    if (!std::strcmp(info.operation(), "heard")) add(info.giop_s.service_contexts(), answered, "answered");
    return true;
}

void intercept() {
    static bool done = false;
    if (done) return;
    done = true;
    omni::omniInterceptors *all = omniORB::getInterceptors();
    all->clientSendRequest.add(send_request);
    all->clientReceiveReply.add(receive_reply);
    all->serverReceiveRequest.add(receive_request);
    all->serverSendReply.add(send_reply);
}

std::string text_of(const PortableServer::ObjectId &id) {
    return std::string(reinterpret_cast<const char *>(id.get_buffer()), id.length());
}

/// The operations of every object; without a name of its own an object reads its ID from `Current`.
struct TargetImpl : POA_Features::Target {
    CORBA::ORB_ptr orb;
    std::string own;
    std::mutex lock;
    CORBA::Long last = 0;

    TargetImpl(CORBA::ORB_ptr orb, std::string name) : orb(orb), own(std::move(name)) {}

    char *name() override {
        if (!own.empty()) return CORBA::string_dup(own.c_str());
        CORBA::Object_var object = orb->resolve_initial_references("POACurrent");
        PortableServer::Current_var current = PortableServer::Current::_narrow(object);
        PortableServer::ObjectId_var id = current->get_object_id();
        return CORBA::string_dup(text_of(id.in()).c_str());
    }
    CORBA::Long halve(CORBA::Long whole, char *&text, CORBA::Double &rest) override {
        if (whole < 0) throw Refused("negative");
        std::string twice = std::string(text) + text;
        CORBA::string_free(text);
        text = CORBA::string_dup(twice.c_str());
        rest = whole / 2.0;
        return whole / 2;
    }
    void note(CORBA::Long number, CORBA::ULong milliseconds) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        std::lock_guard<std::mutex> hold(lock);
        last = number;
    }
    CORBA::Long noted() override {
        std::lock_guard<std::mutex> hold(lock);
        return last;
    }
    char *heard() override { return CORBA::string_dup(heard_now.c_str()); }
};

/// The same, with operations known only at run time.
struct DynamicTarget : PortableServer::DynamicImplementation {
    CORBA::ORB_ptr orb;
    std::mutex lock;
    CORBA::Long last = 0;

    explicit DynamicTarget(CORBA::ORB_ptr orb) : orb(orb) {}

    char *_primary_interface(const PortableServer::ObjectId &, PortableServer::POA_ptr) override {
        return CORBA::string_dup(Target::_PD_repoId);
    }
    static void expect(CORBA::NVList_ptr arguments, CORBA::TypeCode_ptr type, CORBA::Flags mode) {
        CORBA::Any any;
        any.replace(type, nullptr);
        arguments->add_value("", any, mode);
    }
    void invoke(CORBA::ServerRequest_ptr request) override {
        std::string operation = request->operation();
        CORBA::NVList_ptr arguments;
        orb->create_list(0, arguments);
        CORBA::Any result;
        result.replace(CORBA::_tc_void, nullptr);
        if (operation == "halve") return halve(request, arguments);
        if (operation == "note") {
            expect(arguments, CORBA::_tc_long, CORBA::ARG_IN);
            expect(arguments, CORBA::_tc_ulong, CORBA::ARG_IN);
        }
        request->arguments(arguments);
        std::lock_guard<std::mutex> hold(lock);
        if (operation == "note") *arguments->item(0)->value() >>= last;
        else if (operation == "noted") result <<= last;
        else if (operation == "_get_name") result <<= "dynamic";
        else throw CORBA::BAD_OPERATION(0, CORBA::COMPLETED_NO);
        request->set_result(result);
    }
    void halve(CORBA::ServerRequest_ptr request, CORBA::NVList_ptr arguments) {
        expect(arguments, CORBA::_tc_long, CORBA::ARG_IN);
        expect(arguments, CORBA::_tc_string, CORBA::ARG_INOUT);
        expect(arguments, CORBA::_tc_double, CORBA::ARG_OUT);
        request->arguments(arguments);
        CORBA::Long whole = 0;
        *arguments->item(0)->value() >>= whole;
        CORBA::Any result;
        if (whole < 0) {
            result <<= Refused("negative");
            request->set_exception(result);
            return;
        }
        const char *text = "";
        *arguments->item(1)->value() >>= text;
        std::string twice = std::string(text) + text;
        *arguments->item(1)->value() <<= twice.c_str();
        *arguments->item(2)->value() <<= CORBA::Double(whole / 2.0);
        result <<= CORBA::Long(whole / 2);
        request->set_result(result);
    }
};

/// The behaviour of both kinds of servant manager for a name.
PortableServer::Servant find(CORBA::ORB_ptr orb, const PortableServer::ObjectId &id, CORBA::Object_ptr plain) {
    std::string name = text_of(id);
    if (name == "moved") throw PortableServer::ForwardRequest(plain);
    if (name == "gone") throw CORBA::OBJECT_NOT_EXIST(0, CORBA::COMPLETED_NO);
    return new TargetImpl(orb, name);
}

struct Locator : POA_PortableServer::ServantLocator {
    CORBA::ORB_ptr orb;
    CORBA::Object_var plain;

    Locator(CORBA::ORB_ptr orb, CORBA::Object_ptr plain) : orb(orb), plain(CORBA::Object::_duplicate(plain)) {}

    PortableServer::Servant preinvoke(const PortableServer::ObjectId &id, PortableServer::POA_ptr, const char *,
                                      void *&) override {
        return find(orb, id, plain);
    }
    void postinvoke(const PortableServer::ObjectId &, PortableServer::POA_ptr, const char *, void *,
                    PortableServer::Servant servant) override {
        servant->_remove_ref();
    }
};

struct Activator : POA_PortableServer::ServantActivator {
    CORBA::ORB_ptr orb;
    CORBA::Object_var plain;
    std::mutex lock;
    std::map<std::string, CORBA::ULong> made;

    Activator(CORBA::ORB_ptr orb, CORBA::Object_ptr plain) : orb(orb), plain(CORBA::Object::_duplicate(plain)) {}

    PortableServer::Servant incarnate(const PortableServer::ObjectId &id, PortableServer::POA_ptr) override {
        {
            std::lock_guard<std::mutex> hold(lock);
            ++made[text_of(id)];
        }
        return find(orb, id, plain);
    }
    void etherealize(const PortableServer::ObjectId &, PortableServer::POA_ptr, PortableServer::Servant servant, CORBA::Boolean,
                     CORBA::Boolean) override {
        servant->_remove_ref();
    }
};

enum Kind { usual, persistent, located, persistent_located, activated, by_default };

/// A child of the root with application-defined IDs.
PortableServer::POA_ptr adapter(PortableServer::POA_ptr root, const char *name, PortableServer::POAManager_ptr manager, Kind kind) {
    using namespace PortableServer;
    CORBA::PolicyList all;
    auto put = [&](CORBA::Policy_ptr policy) {
        CORBA::ULong n = all.length();
        all.length(n + 1);
        all[n] = policy;
    };
    put(root->create_id_assignment_policy(USER_ID));
    if (kind == Kind::persistent || kind == persistent_located) put(root->create_lifespan_policy(PERSISTENT));
    if (kind == located || kind == persistent_located || kind == by_default) put(root->create_servant_retention_policy(NON_RETAIN));
    if (kind == by_default) {
        put(root->create_id_uniqueness_policy(MULTIPLE_ID));
        put(root->create_request_processing_policy(USE_DEFAULT_SERVANT));
    } else if (kind == located || kind == persistent_located || kind == activated) {
        put(root->create_request_processing_policy(USE_SERVANT_MANAGER));
    }
    return root->create_POA(name, manager, all);
}

Target_ptr activate(PortableServer::POA_ptr poa, const char *name, PortableServer::Servant servant) {
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
    poa->activate_object_with_id(id, servant);
    servant->_remove_ref();
    CORBA::Object_var object = poa->id_to_reference(id);
    return Target::_unchecked_narrow(object);
}

Target_ptr named(PortableServer::POA_ptr poa, const char *name) {
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
    CORBA::Object_var object = poa->create_reference_with_id(id, Target::_PD_repoId);
    return Target::_unchecked_narrow(object);
}

struct Maker : POA_PortableServer::AdapterActivator {
    CORBA::ORB_ptr orb;
    CORBA::Object_var plain;

    Maker(CORBA::ORB_ptr orb, CORBA::Object_ptr plain) : orb(orb), plain(CORBA::Object::_duplicate(plain)) {}

    CORBA::Boolean unknown_adapter(PortableServer::POA_ptr parent, const char *name) override {
        if (std::strcmp(name, "adapted")) return false;
        PortableServer::POAManager_var manager = parent->the_POAManager();
        PortableServer::POA_var poa = adapter(parent, name, manager, persistent_located);
        PortableServer::ServantManager_var locator = (new Locator(orb, plain))->_this();
        poa->set_servant_manager(locator);
        return true;
    }
};

bool again = false;

struct DeskImpl : POA_Features::Desk {
    CORBA::ORB_var orb;
    PortableServer::POA_var root;
    CORBA::ULong number;
    Target_var plain_, dynamic_, held_, discarded_, destroyed_, persistent_;
    PortableServer::POA_var located_, activated_, default_;
    PortableServer::POAManager_var active, holding;
    Activator *activator;

    TargetImpl *target(const char *name) { return new TargetImpl(orb, name); }

    DeskImpl(CORBA::ORB_ptr given, PortableServer::POA_ptr poa, CORBA::ULong generation)
        : orb(CORBA::ORB::_duplicate(given)), root(PortableServer::POA::_duplicate(poa)), number(generation) {
        active = root->the_POAManager();
        PortableServer::ObjectId_var id = root->activate_object(target("plain"));
        CORBA::Object_var object = root->id_to_reference(id);
        plain_ = Target::_unchecked_narrow(object);
        id = root->activate_object(new DynamicTarget(orb));
        object = root->id_to_reference(id);
        dynamic_ = Target::_unchecked_narrow(object);
        by_key();
        located_ = adapter(root, "located", active, Kind::located);
        PortableServer::ServantManager_var manager = (new Locator(orb, plain_))->_this();
        located_->set_servant_manager(manager);
        activated_ = adapter(root, "activated", active, Kind::activated);
        activator = new Activator(orb, plain_);
        manager = activator->_this();
        activated_->set_servant_manager(manager);
        default_ = adapter(root, "by_default", active, Kind::by_default);
        default_->set_servant(target(""));
        PortableServer::AdapterActivator_var maker = (new Maker(orb, plain_))->_this();
        root->the_activator(maker);
        PortableServer::POA_var holder = adapter(root, "held", PortableServer::POAManager::_nil(), usual);
        held_ = activate(holder, "held", target("held"));
        holding = holder->the_POAManager();
        PortableServer::POA_var discarder = adapter(root, "discarded", PortableServer::POAManager::_nil(), usual);
        discarded_ = activate(discarder, "discarded", target("discarded"));
        PortableServer::POAManager_var(discarder->the_POAManager())->discard_requests(false);
        PortableServer::POA_var doomed = adapter(root, "destroyed", active, usual);
        destroyed_ = activate(doomed, "destroyed", target("destroyed"));
        doomed->destroy(true, true);
        PortableServer::POA_var keeper = adapter(root, "persistent", active, Kind::persistent);
        persistent_ = activate(keeper, "persistent", target("persistent"));
    }

    /// The adapter whose IDs are whole object keys.
    void by_key() {
        CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(poa->the_POAManager())->activate();
        Target_var greeter = activate(poa, "Greeter", target("plain"));
    }

    Target_ptr plain() override { return Target::_duplicate(plain_); }
    Target_ptr dynamically() override { return Target::_duplicate(dynamic_); }
    Target_ptr located(const char *name) override { return named(located_, name); }
    Target_ptr activated(const char *name) override { return named(activated_, name); }
    CORBA::ULong incarnations(const char *name) override {
        std::lock_guard<std::mutex> hold(activator->lock);
        return activator->made[name];
    }
    Target_ptr by_default(const char *name) override { return named(default_, name); }
    /// The adapter of the reference is destroyed before any client can use it.
    Target_ptr adapted(const char *name) override {
        PortableServer::POA_var poa = adapter(root, "adapted", active, persistent_located);
        Target_var made = named(poa, name);
        poa->destroy(false, false);
        return made._retn();
    }
    Target_ptr held() override { return Target::_duplicate(held_); }
    void release() override { holding->activate(); }
    Target_ptr discarded() override { return Target::_duplicate(discarded_); }
    Target_ptr destroyed() override { return Target::_duplicate(destroyed_); }
    Target_ptr persistent() override { return Target::_duplicate(persistent_); }
    CORBA::ULong generation() override { return number; }
    void restart() override {
        again = true;
        orb->shutdown(false);
    }
    void shutdown() override { orb->shutdown(false); }
};

/// Ends the server when the process that started it ends.
void watch_standard_input() {
    char buffer[64];
    while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
    }
    _exit(0);
}

int serve(int argc, char **argv) {
    std::thread(watch_standard_input).detach();
    for (CORBA::ULong generation = 1;; ++generation) {
        std::vector<char *> arguments(argv, argv + argc);
        int count = argc;
        CORBA::ORB_var orb = CORBA::ORB_init(count, arguments.data());
        intercept();
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var manager = root->the_POAManager();
        manager->activate();
        PortableServer::POA_var keeper = adapter(root, "desk", manager, persistent);
        PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("desk");
        keeper->activate_object_with_id(id, new DeskImpl(orb, root, generation));
        object = keeper->id_to_reference(id);
        if (generation == 1) std::cout << CORBA::String_var(orb->object_to_string(object)).in() << std::endl;
        orb->run();
        if (!again) _exit(0); // the watcher may still block in its read
        again = false;
        orb->destroy();
    }
}

void expect(bool holds, const std::string &what) {
    if (!holds) throw std::runtime_error(what);
}
template <class T, class U> void equal(const char *what, const T &seen, const U &expected) {
    if (seen == static_cast<T>(expected)) return;
    std::ostringstream s;
    s << what << ": expected " << expected << ", saw " << seen;
    throw std::runtime_error(s.str());
}
void equal(const char *what, char *seen, const char *expected) {
    equal(what, std::string(CORBA::String_var(seen).in()), std::string(expected));
}

std::string only;
int ran = 0, failed = 0;

void run(const std::string &name, const std::function<void()> &body) {
    if (name.compare(0, only.size(), only) != 0) return;
    ++ran;
    std::ostringstream what;
    try {
        body();
        std::cout << "ok " << name << std::endl;
        return;
    } catch (const CORBA::SystemException &e) {
        what << e._name() << " (minor 0x" << std::hex << e.minor() << ")";
    } catch (const CORBA::Exception &e) {
        what << e._name();
    } catch (const std::exception &e) {
        what << e.what();
    }
    std::cout << "FAIL " << name << ": " << what.str() << std::endl;
    ++failed;
}

template <class E> void raises(const std::function<void()> &body) {
    try {
        body();
    } catch (const E &) {
        return;
    }
    throw std::runtime_error("no exception");
}

void eventually(const char *what, const std::function<bool()> &done) {
    auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
        expect(std::chrono::steady_clock::now() < give_up, std::string(what) + ": it never happened");
        std::this_thread::yield();
    }
}

/// An operation that every object has, without arguments.
CORBA::Request_ptr implicit(Target_ptr target, const char *operation, CORBA::TypeCode_ptr type) {
    CORBA::Request_var request = target->_request(operation);
    request->set_return_type(type);
    request->invoke();
    if (request->env()->exception()) request->env()->exception()->_raise();
    return request._retn();
}

void operations(Desk_ptr desk, Target_ptr plain) {
    run("operations/is-a", [&] {
        equal("a target", plain->_is_a(Target::_PD_repoId), true);
        equal("a desk", plain->_is_a(Desk::_PD_repoId), false);
    });
    run("operations/non-existent", [&] {
        equal("plain", plain->_non_existent(), false);
        equal("destroyed", Target_var(desk->destroyed())->_non_existent(), true);
    });
    run("operations/repository-id", [&] {
        CORBA::Request_var request = implicit(plain, "_repository_id", CORBA::_tc_string);
        const char *id = "";
        request->return_value() >>= id;
        equal("id", std::string(id), Target::_PD_repoId);
    });
    run("operations/interface", [&] {
        try {
            CORBA::Request_var request = implicit(plain, "_interface", CORBA::_tc_Object);
            CORBA::Object_var none;
            request->return_value() >>= CORBA::Any::to_object(none.out());
            equal("interface", CORBA::is_nil(none), true);
        } catch (const CORBA::INTF_REPOS &) {
        } catch (const CORBA::NO_IMPLEMENT &) {
        } catch (const CORBA::INITIALIZE &) {
        }
    });
    run("operations/component", [&] {
        CORBA::Request_var request = implicit(plain, "_component", CORBA::_tc_Object);
        CORBA::Object_var none;
        request->return_value() >>= CORBA::Any::to_object(none.out());
        equal("component", CORBA::is_nil(none), true);
    });
    run("operations/equivalent", [&] {
        Target_var other = desk->plain();
        equal("equivalent", plain->_is_equivalent(other), true);
        equal("hash", plain->_hash(1000), other->_hash(1000));
        equal("another", plain->_is_equivalent(desk), false);
    });
    run("locate/here", [&] { equal("name", Target_var(desk->plain())->name(), "plain"); });
    run("locate/unknown", [&] { raises<CORBA::OBJECT_NOT_EXIST>([&] { Target_var(desk->destroyed())->name(); }); });
}

void adapters(Desk_ptr desk) {
    run("locator/found", [&] { equal("name", Target_var(desk->located("one"))->name(), "one"); });
    run("locator/moved", [&] { equal("name", Target_var(desk->located("moved"))->name(), "plain"); });
    run("locator/gone", [&] { raises<CORBA::OBJECT_NOT_EXIST>([&] { Target_var(desk->located("gone"))->name(); }); });
    run("activator/found", [&] { equal("name", Target_var(desk->activated("two"))->name(), "two"); });
    run("activator/once", [&] {
        Target_var target = desk->activated("three");
        for (int i = 0; i < 3; ++i) CORBA::String_var(target->name());
        equal("incarnations", desk->incarnations("three"), 1u);
    });
    run("activator/moved", [&] { equal("name", Target_var(desk->activated("moved"))->name(), "plain"); });
    run("activator/gone", [&] { raises<CORBA::OBJECT_NOT_EXIST>([&] { Target_var(desk->activated("gone"))->name(); }); });
    run("default/names", [&] {
        equal("name", Target_var(desk->by_default("four"))->name(), "four");
        equal("name", Target_var(desk->by_default("five"))->name(), "five");
    });
    run("adapter/made", [&] { equal("name", Target_var(desk->adapted("six"))->name(), "six"); });
    run("adapter/destroyed", [&] { raises<CORBA::OBJECT_NOT_EXIST>([&] { Target_var(desk->destroyed())->name(); }); });
}

void managers(Desk_ptr desk) {
    run("manager/held", [&] {
        Target_var held = desk->held();
        CORBA::Request_var request = held->_request("_get_name");
        request->set_return_type(CORBA::_tc_string);
        request->send_deferred();
        // Its reply would have come before this one, if the request had not been held.
        equal("generation", desk->generation(), 1u);
        equal("answered", request->poll_response(), false);
        desk->release();
        request->get_response();
        if (request->env()->exception()) request->env()->exception()->_raise();
        const char *name = "";
        request->return_value() >>= name;
        equal("name", std::string(name), "held");
    });
    run("manager/discarding", [&] { raises<CORBA::TRANSIENT>([&] { Target_var(desk->discarded())->name(); }); });
}

/// `corbaloc:` with the host and port of a reference.
CORBA::Object_ptr by_key(CORBA::ORB_ptr orb, Target_ptr plain, const char *key) {
    omniIOR_var ior = plain->_PR_getobj()->_getIOR();
    std::string address = ior->getIORInfo()->addresses()[0]->address(); // giop:tcp:host:port
    std::string url = "corbaloc:iiop:1.2@" + address.substr(std::strlen("giop:tcp:")) + "/" + key;
    return orb->string_to_object(url.c_str());
}

CORBA::Request_ptr halve(Target_ptr target, CORBA::Long whole) {
    CORBA::Request_var request = target->_request("halve");
    request->add_in_arg() <<= whole;
    request->add_inout_arg() <<= "ab";
    request->add_out_arg().replace(CORBA::_tc_double, nullptr);
    request->set_return_type(CORBA::_tc_long);
    request->exceptions()->add(_tc_Refused);
    return request._retn();
}

void check_halved(CORBA::Request_ptr request) {
    if (request->env()->exception()) request->env()->exception()->_raise();
    CORBA::Long result = 0;
    const char *text = "";
    CORBA::Double rest = 0;
    request->return_value() >>= result;
    *request->arguments()->item(1)->value() >>= text;
    *request->arguments()->item(2)->value() >>= rest;
    equal("result", result, 3);
    equal("text", std::string(text), "abab");
    equal("rest", rest, 3.5);
}

void dynamic(Desk_ptr desk, Target_ptr plain) {
    run("dii/call", [&] {
        CORBA::Request_var request = halve(plain, 7);
        request->invoke();
        check_halved(request);
    });
    run("dii/exception", [&] {
        CORBA::Request_var request = halve(plain, -1);
        request->invoke();
        CORBA::UnknownUserException *raised = CORBA::UnknownUserException::_downcast(request->env()->exception());
        expect(raised, "nothing raised");
        const Refused *refused = nullptr;
        expect(raised->exception() >>= refused, "another exception");
        equal("why", std::string(refused->why), "negative");
    });
    run("dii/oneway", [&] {
        CORBA::Request_var request = plain->_request("note");
        request->add_in_arg() <<= CORBA::Long(11);
        request->add_in_arg() <<= CORBA::ULong(0);
        request->send_oneway();
        eventually("the note", [&] { return plain->noted() == 11; });
    });
    run("dii/deferred", [&] {
        std::vector<CORBA::Request_var> requests;
        for (int i = 0; i < 5; ++i) {
            requests.push_back(halve(plain, 7));
            requests.back()->send_deferred();
        }
        for (CORBA::Request_var &request : requests) {
            request->get_response();
            check_halved(request);
        }
    });
    run("dsi/call", [&] {
        CORBA::String_var text = CORBA::string_dup("ab");
        CORBA::Double rest = 0;
        equal("result", Target_var(desk->dynamically())->halve(7, text.inout(), rest), 3);
        equal("text", std::string(text.in()), "abab");
        equal("rest", rest, 3.5);
    });
    run("dsi/exception", [&] {
        CORBA::String_var text = CORBA::string_dup("");
        CORBA::Double rest;
        raises<Refused>([&] { Target_var(desk->dynamically())->halve(-1, text.inout(), rest); });
    });
    run("dsi/oneway", [&] {
        Target_var target = desk->dynamically();
        target->note(12, 0);
        eventually("the note", [&] { return target->noted() == 12; });
    });
    run("dsi/operations", [&] {
        Target_var target = desk->dynamically();
        equal("a target", target->_is_a(Target::_PD_repoId), true);
        equal("gone", target->_non_existent(), false);
    });
}

void restart(Desk_ptr desk, Target_ptr plain) {
    run("restart/persistent", [&] {
        Target_var kept = desk->persistent();
        equal("before", kept->name(), "persistent");
        desk->restart();
        eventually("the restart", [&] {
            try {
                return desk->generation() == 2;
            } catch (const CORBA::COMM_FAILURE &) {
            } catch (const CORBA::TRANSIENT &) {
            } catch (const CORBA::OBJECT_NOT_EXIST &) {
            } catch (const CORBA::OBJ_ADAPTER &) {
            }
            return false;
        });
        equal("after", kept->name(), "persistent");
    });
    run("restart/transient", [&] { raises<CORBA::OBJECT_NOT_EXIST>([&] { CORBA::String_var(plain->name()); }); });
}

int call(CORBA::ORB_ptr orb, const char *reference) {
    intercept();
    CORBA::Object_var object = orb->string_to_object(reference);
    Desk_var desk = Desk::_narrow(object);
    Target_var plain = desk->plain();
    operations(desk, plain);
    adapters(desk);
    managers(desk);
    run("key/plain", [&] {
        object = by_key(orb, plain, "Greeter");
        equal("name", Target_var(Target::_narrow(object))->name(), "plain");
    });
    run("locate/forward", [&] { // it is located before it is called
        object = by_key(orb, plain, "Greeter");
        equal("name", Target_var(Target::_unchecked_narrow(object))->name(), "plain");
    });
    run("key/unknown", [&] {
        object = by_key(orb, plain, "Nobody");
        raises<CORBA::OBJECT_NOT_EXIST>([&] { CORBA::String_var(Target_var(Target::_unchecked_narrow(object))->name()); });
    });
    dynamic(desk, plain);
    for (const char *name : {"scope/server", "scope/target"}) {
        run(name, [] { expect(false, "omniORB has no sync scopes"); });
    }
    run("context/sent", [&] {
        said = "said by an interceptor";
        equal("heard", plain->heard(), "said by an interceptor");
        said.clear();
        equal("heard without", plain->heard(), "");
    });
    run("context/returned", [&] {
        CORBA::String_var(plain->heard());
        equal("returned", returned, "answered");
    });
    restart(desk, plain);
    run("shutdown", [&] { desk->shutdown(); });
    orb->destroy();
    std::cout << ran << " cases, " << failed << " failed" << std::endl;
    return failed == 0 && ran > 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    try {
        for (int i = 1; i < argc; ++i) {
            if (!std::strcmp(argv[i], "--serve")) return serve(argc, argv);
        }
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        omniORB::setClientCallTimeout(10000);
        // An error is reported rather than tried again.
        omniORB::installTransientExceptionHandler(0, [](void *, CORBA::ULong, const CORBA::TRANSIENT &) -> CORBA::Boolean { return false; });
        if (argc == 5 && !std::strcmp(argv[3], "--only")) only = argv[4];
        if (argc >= 3 && !std::strcmp(argv[1], "--call")) return call(orb, argv[2]);
        std::cerr << "usage: features --serve | --call REFERENCE [--only PREFIX] [-ORB...]" << std::endl;
        return 2;
    } catch (const CORBA::Exception &e) {
        std::cerr << "features: " << e._name() << std::endl;
        return 1;
    }
}
