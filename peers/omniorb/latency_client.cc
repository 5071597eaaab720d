// The client of the latency experiment, of omniORB and of TAO (`peers/tao`):
//
//     latency-client REFERENCE [--operation ping|oneway|structs|octets] [--elements 1024] [--calls 20000]
//                    [--warm-up 2000] [--cpu N] [-ORB...]
//
// times each call with the steady clock and prints one JSON object; times are in nanoseconds.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "latency.hh"
#include "pin.hh"
#include "times.hh"

#include <orb.hh>

namespace {

StructSeq make_structs(CORBA::ULong n) {
    StructSeq s;
    s.length(n);
    for (CORBA::ULong i = 0; i < n; ++i) {
        s[i].s = static_cast<CORBA::Short>(i);
        s[i].c = 'c';
        s[i].l = static_cast<CORBA::Long>(i);
        s[i].o = 7;
        s[i].d = i;
    }
    return s;
}

void report(const std::string &operation, long elements, std::vector<std::int64_t> times) {
    std::cout << "{\"peer\":\"" << orb_name() << "\",\"operation\":\"" << operation
              << "\",\"elements\":" << elements << "," << summary(std::move(times)) << "}" << std::endl;
}

int usage() {
    std::cerr << "usage: latency-client REFERENCE [--operation ping|oneway|structs|octets] [--elements N] [--calls N]"
                 " [--warm-up N] [--cpu N] [-ORB...]"
              << std::endl;
    return 2;
}

} // namespace

int main(int argc, char **argv) {
    try {
        pin(take_number(argc, argv, "--cpu", -1));
        std::string operation = take_text(argc, argv, "--operation", "ping");
        long elements = take_number(argc, argv, "--elements", 1024);
        long calls = take_number(argc, argv, "--calls", 20000);
        long warm_up = take_number(argc, argv, "--warm-up", 2000);
        CORBA::ORB_var orb = make_orb(argc, argv, Side::client);
        if (argc != 2 || calls < 1) return usage();
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        Latency_var target = Latency::_narrow(object.in());
        if (CORBA::is_nil(target.in())) {
            std::cerr << "latency-client: the reference is not a Latency" << std::endl;
            return 1;
        }
        std::vector<std::int64_t> times;
        if (operation == "ping") {
            times = measure([&] { target->ping(); }, warm_up, calls);
        } else if (operation == "oneway") {
            times = measure([&] { target->ping_1way(); }, warm_up, calls);
        } else if (operation == "structs") {
            StructSeq s = make_structs(static_cast<CORBA::ULong>(elements));
            times = measure([&] { target->sendStructSeq(s); }, warm_up, calls);
        } else if (operation == "octets") {
            OctetSeq s;
            s.length(static_cast<CORBA::ULong>(elements));
            std::fill_n(s.get_buffer(), elements, 0x5a);
            times = measure([&] { target->sendOctetSeq(s); }, warm_up, calls);
        } else {
            return usage();
        }
        report(operation, operation == "structs" || operation == "octets" ? elements : 0, std::move(times));
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException &e) {
        std::cerr << "latency-client: CORBA::" << e._name() << " (minor " << e.minor() << ")" << std::endl;
        return 1;
    }
}
