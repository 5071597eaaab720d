// The parts of the programs of calls that differ between ORBs, for omniORB; `peers/tao/orb.hh` has those for TAO. The stubs are
// included before it.
#ifndef ORB_HH
#define ORB_HH

#include <string>

/// The ORB with its version.
inline std::string orb_name() { return std::string("omniORB ") + omniORB::versionString(); }

enum class Side { client, server };

/// Creates the ORB, and removes its options from the arguments. A call of a client waits for 30 seconds.
inline CORBA::ORB_ptr make_orb(int &argc, char **argv, Side side) {
    CORBA::ORB_ptr orb = CORBA::ORB_init(argc, argv);
    if (side == Side::client) omniORB::setClientCallTimeout(30000);
    return orb;
}

/// Serves requests until the function returns: omniORB has threads of its own for them.
template <class Wait> void serve(CORBA::ORB_ptr, Wait wait) { wait(); }

/// The base of servants with a dynamic skeleton.
typedef PortableServer::DynamicImplementation DynamicServant;

/// Makes an any for a value of this type, which is read later.
inline void set_type(CORBA::Any &any, CORBA::TypeCode_ptr type) { any.replace(type, nullptr); }

/// Ends an operation without a result.
inline void finish(CORBA::ServerRequest_ptr request) {
    CORBA::Any result;
    result.replace(CORBA::_tc_void, nullptr);
    request->set_result(result);
}

#endif
