// A client of the tutorial's server for omniORB, in C++.
#include <iostream>

#include "exchange.hh"

// ANCHOR: client
int main(int argc, char **argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Exchange::Market_var market = Exchange::Market::_narrow(object);
    if (CORBA::is_nil(market)) return 1;
    try {
        market->buy(3, 26400);
        std::cout << "bought" << std::endl;
    } catch (const Exchange::Rejected &no) {
        std::cout << "rejected: " << no.reason << std::endl;
    } catch (const CORBA::SystemException &error) {
        std::cout << error._name() << std::endl;
    }
    orb->destroy();
}
// ANCHOR_END: client
