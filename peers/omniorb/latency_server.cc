// The server of the experiments with one object, of omniORB and of TAO (`peers/tao`): `latency-server [--cpu N] [--work MICROSECONDS]
// [--octets-work MICROSECONDS] [--next REFERENCE] [-ORB...]` prints its reference on one line, answers each line of its input with the number of
// `ping`s so far, and serves until its standard input ends. Each `ping`, and each `sendOctetSeq`, computes for that
// processor time; with a next object, it calls that one instead.

#include <time.h>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>

#include "latency.hh"
#include "pin.hh"

#include <orb.hh>

namespace {

long thread_nanos() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

struct LatencyImpl : POA_Latency {
    LatencyImpl(long work_micros, long octets_work_micros, Latency_ptr next_object)
        : work_nanos(work_micros * 1000), octets_work_nanos(octets_work_micros * 1000), next(Latency::_duplicate(next_object)) {}

    static void compute(long nanos) {
        if (nanos > 0)
            for (long end = thread_nanos() + nanos; thread_nanos() < end;) {
            }
    }
    void ping() override {
        if (CORBA::is_nil(next.in()))
            compute(work_nanos);
        else
            next->ping();
        calls.fetch_add(1, std::memory_order_relaxed);
    }
    void ping_1way() override {}
    void sendStructSeq(const StructSeq &) override {}
    void sendOctetSeq(const OctetSeq &s) override {
        if (CORBA::is_nil(next.in()))
            compute(octets_work_nanos);
        else
            next->sendOctetSeq(s);
    }
    void sendStructSeq_1way(const StructSeq &) override {}
    void sendOctetSeq_1way(const OctetSeq &) override {}

    const long work_nanos, octets_work_nanos;
    const Latency_var next; // nil in the last server
    std::atomic<unsigned long> calls{0};
};

} // namespace

int main(int argc, char **argv) {
    try {
        pin(take_number(argc, argv, "--cpu", -1)); // before any thread is started: threads inherit the affinity
        long work = take_number(argc, argv, "--work", 0), octets_work = take_number(argc, argv, "--octets-work", 0);
        std::string next = take_text(argc, argv, "--next", "");
        CORBA::ORB_var orb = make_orb(argc, argv, Side::server);
        if (argc != 1) {
            std::cerr << "usage: latency-server [--cpu N] [--work MICROSECONDS] [--octets-work MICROSECONDS] [--next REFERENCE]"
                         " [-ORB...]"
                      << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object.in());
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        Latency_var next_object = Latency::_nil();
        if (!next.empty()) next_object = Latency::_narrow(CORBA::Object_var(orb->string_to_object(next.c_str())).in());
        PortableServer::Servant_var<LatencyImpl> servant(new LatencyImpl(work, octets_work, next_object.in()));
        PortableServer::ObjectId_var id = root->activate_object(servant.in());
        object = servant->_this();
        serve(orb.in(), [&] {
            std::cout << CORBA::String_var(orb->object_to_string(object.in())).in() << std::endl;
            for (std::string line; std::getline(std::cin, line);) std::cout << servant->calls.load() << std::endl;
        });
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << "latency-server: " << e._name() << std::endl;
        return 1;
    }
}
