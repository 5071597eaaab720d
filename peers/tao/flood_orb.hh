// The ORB of the floods, for TAO; `peers/floods-omniorb/flood_orb.hh` has that of omniORB.
#ifndef FLOOD_ORB_HH
#define FLOOD_ORB_HH

#include <tao/PortableServer/Servant_var.h>

#include "../flood.h"
#include "strategies.hh"

/// Creates an ORB that listens on this host, with the queues of the flood. `TCP_NODELAY` is TAO's default.
inline CORBA::ORB_ptr make_orb(const char *host, const flood &flood) {
    std::vector<std::string> arguments = {"tao-ttcp", "-ORBListenEndpoints", std::string("iiop://") + host};
    if (flood.queue > 0)
        for (const char *option : {"-ORBSndSock", "-ORBRcvSock"}) {
            arguments.push_back(option);
            arguments.push_back(std::to_string(flood.queue));
        }
    return make_tuned_orb(arguments);
}

#endif
