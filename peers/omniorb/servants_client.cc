// The client of the scalability experiment, of omniORB and of TAO (`peers/tao`): `servants-client REFERENCE [--cpu N] [-ORB...]` gets
// references to all servants, prints `ready N`, and then, for each line `ALGORITHM CALL CASE STYLE WARM-UP CALLS BEGIN` of its standard
// input, makes these calls and prints one JSON object with their times in nanoseconds, and with the number of servants that the timed
// calls have reached, as counted by the server.

#include <cstdint>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "latency.hh"
#include "pin.hh"
#include "times.hh"

#include <orb.hh>

namespace {

// The servant of the next call; the experiment's other programs compute the same.
struct Targets {
    Targets(const std::string &algorithm, std::uint32_t servants, std::uint32_t begin)
        : algorithm(algorithm), servants(servants), begin(begin), state(begin) {}

    std::uint32_t next() {
        std::uint64_t call = calls++;
        if (algorithm == "train") return static_cast<std::uint32_t>((begin + call / 100) % servants);
        if (algorithm == "round-robin") return static_cast<std::uint32_t>((begin + call) % servants);
        if (algorithm == "worst-case") return servants - 1;
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>((state >> 33) % servants);
    }

    std::string algorithm;
    std::uint32_t servants;
    std::uint32_t begin;
    std::uint64_t calls = 0;
    std::uint64_t state;
};

struct Client {
    Client(CORBA::ORB_ptr orb, Servants_ptr directory) : orb(orb), directory(Servants::_duplicate(directory)) {
        CORBA::ULong count = directory->count();
        while (objects.size() < count) {
            LatencySeq_var some = directory->references(static_cast<CORBA::ULong>(objects.size()), 1000);
            for (CORBA::ULong i = 0; i < some->length(); ++i) objects.push_back(Latency::_duplicate(some[i]));
        }
        for (Latency_var &object : objects) object->ping_1way();
        objects[0]->ping();
    }

    // Makes the parameters of a call: `void`, `octets-N`, `structs-N`, or `structs`, which are 1,024.
    void prepare(const std::string &load) {
        std::size_t dash = load.find('-');
        kind = load.substr(0, dash);
        CORBA::ULong count = dash == std::string::npos ? 1024 : static_cast<CORBA::ULong>(std::stoul(load.substr(dash + 1)));
        structs.length(kind == "structs" ? count : 0);
        for (CORBA::ULong i = 0; i < structs.length(); ++i) {
            structs[i].s = static_cast<CORBA::Short>(i);
            structs[i].c = 'c';
            structs[i].l = static_cast<CORBA::Long>(i);
            structs[i].o = 7;
            structs[i].d = i;
        }
        octets.length(kind == "octets" ? count : 0);
        for (CORBA::ULong i = 0; i < octets.length(); ++i) octets[i] = static_cast<CORBA::Octet>(i % 251);
    }

    // A dynamic invocation of a servant.
    CORBA::Request_ptr request(std::uint32_t target, const std::string &operation) {
        CORBA::Request_ptr request = objects[target]->_request(operation.c_str());
        if (kind == "structs") request->add_in_arg() <<= structs;
        else if (kind == "octets") request->add_in_arg() <<= octets;
        request->set_return_type(CORBA::_tc_void);
        return request;
    }

    std::string carry_out(const std::string &line) {
        std::istringstream words(line);
        std::string algorithm, call, load, style;
        long warm_up = 0, calls = 0;
        std::uint32_t begin = 0;
        if (!(words >> algorithm >> call >> load >> style >> warm_up >> calls >> begin)) throw std::runtime_error("no job: " + line);
        Targets targets(algorithm, static_cast<std::uint32_t>(objects.size()), begin);
        bool one_way = call == "oneway";
        prepare(load);
        // The directory is queried after the warm-up calls and after the timed calls, so that no call is pending when
        // the next part begins.
        auto timed = [&](auto make) {
            for (long i = 0; i < warm_up; ++i) make();
            directory->called();
            std::vector<std::int64_t> times = measure(make, 0, calls);
            return "{" + summary(std::move(times)) + ",\"servants_called\":" + std::to_string(directory->called()) + "}";
        };
        if (style == "dii") {
            std::string operation = kind == "void" ? "ping" : kind == "octets" ? "sendOctetSeq" : "sendStructSeq";
            if (one_way) operation += "_1way";
            return timed([&] {
                CORBA::Request_var dynamic = request(targets.next(), operation);
                one_way ? dynamic->send_oneway() : dynamic->invoke();
                if (dynamic->env()->exception()) throw std::runtime_error("a dynamic invocation failed");
            });
        } else if (style == "dii-reused") {
            // CORBA does not allow reuse (11.2.2); omniORB rejects it.
            return "{\"absent\":\"a request is invoked once only\"}";
        } else if (kind == "void") {
            return timed([&] { Latency_ptr to = objects[targets.next()].in(); one_way ? to->ping_1way() : to->ping(); });
        } else if (kind == "octets") {
            return timed([&] { Latency_ptr to = objects[targets.next()].in(); one_way ? to->sendOctetSeq_1way(octets) : to->sendOctetSeq(octets); });
        } else {
            return timed([&] { Latency_ptr to = objects[targets.next()].in(); one_way ? to->sendStructSeq_1way(structs) : to->sendStructSeq(structs); });
        }
    }

    CORBA::ORB_ptr orb;
    Servants_var directory;
    std::vector<Latency_var> objects;
    std::string kind;
    StructSeq structs;
    OctetSeq octets;
};

} // namespace

int main(int argc, char **argv) {
    try {
        pin(take_number(argc, argv, "--cpu", -1));
        CORBA::ORB_var orb = make_orb(argc, argv, Side::client);
        if (argc != 2) {
            std::cerr << "usage: servants-client REFERENCE [--cpu N] [-ORB...]" << std::endl;
            return 2;
        }
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        Servants_var directory = Servants::_narrow(object.in());
        if (CORBA::is_nil(directory.in())) {
            std::cerr << "servants-client: the reference is not a Servants" << std::endl;
            return 1;
        }
        Client client(orb.in(), directory.in());
        std::cout << "ready " << client.objects.size() << std::endl;
        std::string line;
        while (std::getline(std::cin, line)) std::cout << client.carry_out(line) << std::endl;
        client.objects.clear();
        client.directory = Servants::_nil();
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException &e) {
        std::cerr << "servants-client: CORBA::" << e._name() << " (minor " << e.minor() << ")" << std::endl;
        return 1;
    } catch (const std::exception &e) {
        std::cerr << "servants-client: " << e.what() << std::endl;
        return 1;
    }
}
