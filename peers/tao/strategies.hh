// TAO's ORB with the strategies that its documentation recommends for throughput and latency (README.md has the places).
#ifndef STRATEGIES_HH
#define STRATEGIES_HH

#include <tao/ORB.h>

#include <string>
#include <vector>

/// Creates the ORB by these arguments, the first of which is the program's name; those that are not the ORB's remain.
inline CORBA::ORB_ptr make_tuned_orb(std::vector<std::string> &arguments) {
    const char *const tuned[] = {
        "-ORBDottedDecimalAddresses", "1",
        "-ORBSvcConfDirective", "static Resource_Factory \"-ORBFlushingStrategy blocking\"",
        "-ORBSvcConfDirective", "static Client_Strategy_Factory \"-ORBClientConnectionHandler RW -ORBTransportMuxStrategy EXCLUSIVE\"",
        "-ORBSvcConfDirective",
        "static Server_Strategy_Factory \"-ORBConcurrency thread-per-connection -ORBThreadPerConnectionTimeout INFINITE"
        " -ORBAllowReactivationOfSystemids 0\"",
    };
    arguments.insert(arguments.end(), std::begin(tuned), std::end(tuned));
    std::vector<char *> pointers;
    for (std::string &argument : arguments) pointers.push_back(&argument[0]);
    int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    CORBA::ORB_ptr orb = CORBA::ORB_init(count, pointers.data());
    arguments = std::vector<std::string>(pointers.begin(), pointers.begin() + count);
    return orb;
}

#endif
