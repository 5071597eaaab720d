// Notebooks for omniORB, in C++; the same for TAO with -DTAO_DESK.
#include <csignal>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#ifdef TAO_DESK
#include <orbsvcs/CosNamingC.h>
#include <tao/LocalObject.h>
#include <tao/PortableServer/ServantActivatorC.h>

#include "deskS.h"
#else
#include <omniORB4/Naming.hh>

#include "desk.hh"
#endif

// ANCHOR: servant
class Notebook : public POA_Desk::Notebook {
public:
    explicit Notebook(const char *name) : name_(name) {}

    char *name() override { return CORBA::string_dup(name_.c_str()); }

    void put(const char *key, const CORBA::Any &value) override {
        std::lock_guard<std::mutex> lock(mutex_);
        entries_[key] = value;
    }

    CORBA::Any *get(const char *key) override {
        std::lock_guard<std::mutex> lock(mutex_);
        auto entry = entries_.find(key);
        if (entry == entries_.end()) throw Desk::NoSuchEntry(key);
        return new CORBA::Any(entry->second);
    }

    CORBA::Long total(Desk::Item_ptr also) override {
        CORBA::Long sum = own_total();
        Desk::Notebook_var other = Desk::Notebook::_narrow(also);
        return CORBA::is_nil(other) ? sum : sum + other->total(Desk::Item::_nil());
    }

    CORBA::Long own_total() {
        std::lock_guard<std::mutex> lock(mutex_);
        CORBA::Long sum = 0, value;
        for (auto &entry : entries_) {
            if (entry.second >>= value) sum += value;
        }
        return sum;
    }

private:
    std::string name_;
    std::mutex mutex_;
    std::map<std::string, CORBA::Any> entries_;
};
// ANCHOR_END: servant

// ANCHOR: activator
#ifdef TAO_DESK
// A local object.
class Activator : public virtual PortableServer::ServantActivator, public virtual CORBA::LocalObject {};
#else
// A servant.
using Activator = POA_PortableServer::ServantActivator;
#endif

class Notebooks : public Activator {
public:
    PortableServer::Servant incarnate(const PortableServer::ObjectId &id, PortableServer::POA_ptr) override {
        CORBA::String_var name = PortableServer::ObjectId_to_string(id);
        std::cout << "opened " << name.in() << std::endl;
        return new Notebook(name.in());
    }

    void etherealize(const PortableServer::ObjectId &id, PortableServer::POA_ptr, PortableServer::Servant servant,
                     CORBA::Boolean, CORBA::Boolean) override {
        CORBA::String_var name = PortableServer::ObjectId_to_string(id);
        if (auto *notebook = dynamic_cast<Notebook *>(servant)) {
            std::cout << "closed " << name.in() << ": " << notebook->own_total() << std::endl;
        }
        servant->_remove_ref();
    }
};
// ANCHOR_END: activator

// ANCHOR: names
void bind(CosNaming::NamingContext_ptr root, const char *id, CORBA::Object_ptr object) {
    CosNaming::Name name;
    name.length(1);
    name[0].id = CORBA::string_dup("desk");
    try {
        CosNaming::NamingContext_var context = root->bind_new_context(name);
    } catch (const CosNaming::NamingContext::AlreadyBound &) {
    }
    name.length(2);
    name[1].id = CORBA::string_dup(id);
    root->rebind(name, object);
}
// ANCHOR_END: names

// ANCHOR: main
int main(int argc, char **argv) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    CORBA::PolicyList policies(3);
    policies.length(3);
    policies[0] = root->create_lifespan_policy(PortableServer::PERSISTENT);
    policies[1] = root->create_id_assignment_policy(PortableServer::USER_ID);
    policies[2] = root->create_request_processing_policy(PortableServer::USE_SERVANT_MANAGER);
    PortableServer::POA_var desk = root->create_POA("desk", PortableServer::POAManager::_nil(), policies);
#ifdef TAO_DESK
    PortableServer::ServantManager_var manager = new Notebooks;
#else
    PortableServer::Servant_var<Notebooks> servants = new Notebooks;
    PortableServer::ServantManager_var manager = servants->_this();
#endif
    desk->set_servant_manager(manager.in());

    object = orb->resolve_initial_references("NameService");
    CosNaming::NamingContext_var names = CosNaming::NamingContext::_narrow(object);
    for (const char *name : {"red", "blue"}) {
        PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
        object = desk->create_reference_with_id(id.in(), "IDL:Desk/Notebook:1.0");
        bind(names, name, object);
    }
    PortableServer::POAManager_var(root->the_POAManager())->activate();
    PortableServer::POAManager_var(desk->the_POAManager())->activate();
    std::cout << "ready" << std::endl;
    std::thread stopper([&] {
        int signal;
        sigwait(&signals, &signal);
        orb->shutdown(false);
    });
    orb->run();
    stopper.join();
    orb->destroy();
}
// ANCHOR_END: main
