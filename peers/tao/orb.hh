// The parts of the programs of calls that differ between ORBs, for TAO; `peers/omniorb/orb.hh` has those for omniORB. The stubs are
// included before it.
#ifndef ORB_HH
#define ORB_HH

#include <tao/AnyTypeCode/Any.h>
#include <tao/AnyTypeCode/NVList.h>
#include <tao/AnyTypeCode/TypeCode_Constants.h>
#include <tao/DynamicInterface/Dynamic_Implementation.h>
#include <tao/DynamicInterface/Request.h>
#include <tao/DynamicInterface/Server_Request.h>
#include <tao/Environment.h>
#include <tao/PortableServer/Servant_var.h>
#include <tao/Version.h>

#include <string>
#include <thread>

#include "strategies.hh"

/// The ORB with its version.
inline std::string orb_name() { return "TAO " TAO_VERSION; }

enum class Side { client, server };

/// Creates the ORB, and removes its options from the arguments. The experiment ends a client whose call takes too long.
inline CORBA::ORB_ptr make_orb(int &argc, char **argv, Side side) {
    std::vector<std::string> arguments(argv, argv + argc);
    if (side == Side::server) {
        arguments.push_back("-ORBListenEndpoints");
        arguments.push_back("iiop://127.0.0.1");
    }
    CORBA::ORB_ptr orb = make_tuned_orb(arguments);
    // The arguments that remain are in their order.
    std::size_t next = 0;
    for (int i = 0; i < argc && next < arguments.size(); ++i)
        if (arguments[next] == argv[i]) argv[next++] = argv[i];
    argc = static_cast<int>(arguments.size());
    return orb;
}

/// Serves requests until the function returns: a thread runs the ORB, which accepts connections and has a thread for each.
template <class Wait> void serve(CORBA::ORB_ptr orb, Wait wait) {
    std::thread loop([orb] { orb->run(); });
    wait();
    orb->shutdown(false);
    loop.join();
}

/// The base of servants with a dynamic skeleton.
typedef TAO_DynamicImplementation DynamicServant;

/// Makes an any for a value of this type, which is read later.
inline void set_type(CORBA::Any &any, CORBA::TypeCode_ptr type) { any._tao_set_typecode(type); }

/// Ends an operation without a result, which TAO assumes if none is set.
inline void finish(CORBA::ServerRequest_ptr) {}

#endif
