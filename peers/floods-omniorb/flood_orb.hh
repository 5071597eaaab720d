// The ORB of the floods, for omniORB; `peers/tao/flood_orb.hh` has that of TAO.
#ifndef FLOOD_ORB_HH
#define FLOOD_ORB_HH

#include <string>

#include "../flood.h"

/// Creates an ORB that listens on this host. There is an option for the queue of the sender, but none for that of the receiver. Messages
/// may be as long as the buffers.
inline CORBA::ORB_ptr make_orb(const char *host, const flood &flood) {
    const std::string queue = flood.queue > 0 ? std::to_string(flood.queue) : "-1";
    const std::string longest = std::to_string(flood.octets + (2 << 20)), endpoint = "giop:tcp:" + std::string(host) + ":";
    const char *options[][2] = {{"endPoint", endpoint.c_str()},
                                {"socketSendBuffer", queue.c_str()},
                                {"giopMaxMsgSize", longest.c_str()},
                                {nullptr, nullptr}};
    int count = 0;
    return CORBA::ORB_init(count, nullptr, "omniORB4", options);
}

#endif
