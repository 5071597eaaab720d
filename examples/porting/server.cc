// The server of the tutorial for omniORB, in C++.
#include <fstream>
#include <iostream>
#include <mutex>

#include "exchange.hh"

// ANCHOR: servant
class Market : public POA_Exchange::Market {
public:
    char *good() override { return CORBA::string_dup("gold"); }

    Exchange::Trade *last() override {
        std::lock_guard<std::mutex> lock(mutex_);
        return new Exchange::Trade(last_);
    }

    void buy(CORBA::ULong quantity, CORBA::LongLong cents) override {
        if (quantity == 0) throw Exchange::Rejected("the quantity is zero");
        std::lock_guard<std::mutex> lock(mutex_);
        last_.quantity = quantity;
        last_.cents = cents;
    }

private:
    std::mutex mutex_;
    Exchange::Trade last_ = {};
};
// ANCHOR_END: servant

// ANCHOR: main
int main(int argc, char **argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);

    CORBA::PolicyList policies(2);
    policies.length(2);
    policies[0] = root->create_lifespan_policy(PortableServer::PERSISTENT);
    policies[1] = root->create_id_assignment_policy(PortableServer::USER_ID);
    PortableServer::POA_var markets = root->create_POA("markets", PortableServer::POAManager::_nil(), policies);

    PortableServer::Servant_var<Market> servant = new Market;
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("gold");
    markets->activate_object_with_id(id, servant);
    object = markets->id_to_reference(id);
    CORBA::String_var reference = orb->object_to_string(object);
    std::ofstream("cxx.ior") << reference;

    PortableServer::POAManager_var(markets->the_POAManager())->activate();
    std::cout << "ready" << std::endl;
    orb->run();
}
// ANCHOR_END: main
