// The server of the scalability experiment, of omniORB and of TAO (`peers/tao`): `servants-server [--cpu N] [--servants N] [--dynamic 1]
// [-ORB...]` prints the reference of the directory of its servants on one line, and serves until its standard input ends. With
// `--dynamic` they have a dynamic skeleton.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <vector>

#include "latency.hh"
#include "pin.hh"

#include <orb.hh>

namespace {

// Whether a servant was called; set once between two queries of the directory.
struct CalledFlag {
    void set() {
        if (!called.load(std::memory_order_relaxed)) called.store(true, std::memory_order_relaxed);
    }

    bool take() { return called.exchange(false, std::memory_order_relaxed); }

    std::atomic<bool> called{false};
};

struct LatencyImpl : POA_Latency, CalledFlag {
    void ping() override { set(); }
    void ping_1way() override { set(); }
    void sendStructSeq(const StructSeq &) override { set(); }
    void sendOctetSeq(const OctetSeq &) override { set(); }
    void sendStructSeq_1way(const StructSeq &) override { set(); }
    void sendOctetSeq_1way(const OctetSeq &) override { set(); }
};

// Reads the arguments of each operation, and returns nothing.
struct DynamicImpl : DynamicServant, CalledFlag {
    explicit DynamicImpl(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

    void invoke(CORBA::ServerRequest_ptr request) override {
        set();
        CORBA::NVList_ptr arguments;
        orb_->create_list(0, arguments);
        std::string operation = request->operation();
        if (operation == "sendStructSeq" || operation == "sendStructSeq_1way") {
            CORBA::NamedValue_ptr argument = arguments->add(CORBA::ARG_IN);
            set_type(*argument->value(), _tc_StructSeq);
        } else if (operation == "sendOctetSeq" || operation == "sendOctetSeq_1way") {
            CORBA::NamedValue_ptr argument = arguments->add(CORBA::ARG_IN);
            set_type(*argument->value(), _tc_OctetSeq);
        }
        request->arguments(arguments);
        finish(request);
    }

    char *_primary_interface(const PortableServer::ObjectId &, PortableServer::POA_ptr) override {
        return CORBA::string_dup("IDL:Latency:1.0");
    }

    CORBA::ORB_var orb_;
};

struct Directory : POA_Servants {
    CORBA::ULong count() override { return static_cast<CORBA::ULong>(objects.size()); }

    LatencySeq *references(CORBA::ULong first, CORBA::ULong how_many) override {
        CORBA::ULong end = std::min<CORBA::ULong>(count(), first + std::min<CORBA::ULong>(how_many, 1000));
        LatencySeq *some = new LatencySeq;
        some->length(end > first ? end - first : 0);
        for (CORBA::ULong i = first; i < end; ++i) (*some)[i - first] = Latency::_duplicate(objects[i].in());
        return some;
    }

    CORBA::ULong called() override {
        return static_cast<CORBA::ULong>(std::count_if(flags.begin(), flags.end(), [](CalledFlag *flag) { return flag->take(); }));
    }

    std::vector<Latency_var> objects;
    std::vector<CalledFlag *> flags; // of the servants, which the adapter keeps until the end
};

} // namespace

int main(int argc, char **argv) {
    try {
        pin(take_number(argc, argv, "--cpu", -1)); // before any thread is started: threads inherit the affinity
        long servants = take_number(argc, argv, "--servants", 1);
        long dynamic = take_number(argc, argv, "--dynamic", 0);
        CORBA::ORB_var orb = make_orb(argc, argv, Side::server);
        if (argc != 1 || servants < 1) {
            std::cerr << "usage: servants-server [--cpu N] [--servants N] [--dynamic 1] [-ORB...]" << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object.in());
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        Directory directory;
        for (long i = 0; i < servants; ++i) {
            PortableServer::ServantBase *servant;
            if (dynamic) {
                DynamicImpl *made = new DynamicImpl(orb.in());
                directory.flags.push_back(made);
                servant = made;
            } else {
                LatencyImpl *made = new LatencyImpl;
                directory.flags.push_back(made);
                servant = made;
            }
            PortableServer::ObjectId_var id = root->activate_object(servant);
            // The type comes from here: in TAO, a servant with a dynamic skeleton has none outside of a request.
            object = root->create_reference_with_id(id.in(), "IDL:Latency:1.0");
            directory.objects.push_back(Latency::_unchecked_narrow(object.in()));
            servant->_remove_ref();
        }
        PortableServer::ObjectId_var id = root->activate_object(&directory);
        object = root->id_to_reference(id.in());
        serve(orb.in(), [&] {
            std::cout << CORBA::String_var(orb->object_to_string(object.in())).in() << std::endl;
            char buffer[64];
            while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
            }
        });
        directory.objects.clear();
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << "servants-server: " << e._name() << std::endl;
        return 1;
    }
}
