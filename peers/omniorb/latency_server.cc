// omniORB's side of the latency experiment: `latency-server [--cpu N] [-ORB...]` prints its reference on one line and
// serves until its standard input ends.

#include <unistd.h>

#include <iostream>
#include <thread>

#include "latency.hh"
#include "pin.hh"

namespace {

struct LatencyImpl : POA_Latency {
    void ping() override {}
    void ping_1way() override {}
    void sendStructSeq(const StructSeq &) override {}
    void sendOctetSeq(const OctetSeq &) override {}
    void sendStructSeq_1way(const StructSeq &) override {}
};

} // namespace

int main(int argc, char **argv) {
    try {
        pin(take_number(argc, argv, "--cpu", -1)); // before any thread is started: threads inherit the affinity
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc != 1) {
            std::cerr << "usage: latency-server [--cpu N] [-ORB...]" << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        PortableServer::Servant_var<LatencyImpl> servant = new LatencyImpl;
        PortableServer::ObjectId_var id = root->activate_object(servant);
        object = servant->_this();
        std::cout << CORBA::String_var(orb->object_to_string(object)).in() << std::endl;
        char buffer[64];
        while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
        }
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << "latency-server: " << e._name() << std::endl;
        return 1;
    }
}
