// Objects by names: `names --call PORT` resolves the names of a naming service at this port, as tests/interop/src/names/client.rs does.
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <omniORB4/CORBA.h>

namespace {

const char *const NAMED = "IDL:Interop/Named:1.0";
const char *const CONTEXT = "IDL:omg.org/CosNaming/NamingContext:1.0";

CORBA::ORB_var orb;
std::string port;

std::string context() { return "corbaname:iiop:1.2@127.0.0.1:" + port + "/NameService"; }

std::string url(const std::string &name) { return context() + "#" + name; }

CORBA::Object_var find(const std::string &url) { return orb->string_to_object(url.c_str()); }

void ensure(bool good, const char *what) {
    if (!good) throw std::runtime_error(what);
}

void leads_to_it(const std::string &name) { ensure(find(url(name))->_is_a(NAMED), "it leads to something else"); }

void is_a_context(const std::string &url) { ensure(find(url)->_is_a(CONTEXT), "it is no naming context"); }

void is_unknown(const std::string &name) {
    try {
        find(url(name));
    } catch (const CORBA::BAD_PARAM &) {
        return;
    }
    throw std::runtime_error("it leads somewhere");
}

const char *const ESCAPED = "x%5c/y%5c.z%5c%5c.k%25%23%20k";

const std::vector<std::pair<std::string, std::function<void()>>> CASES = {
    {"corbaname", [] { leads_to_it("a/b.kind"); }},
    {"corbaname_escaped", [] { leads_to_it(ESCAPED); }},
    {"corbaname_context", [] { is_a_context(context()); }},
    {"corbaname_unknown", [] { is_unknown("a/nobody"); }},
    {"corbaname_malformed", [] { is_unknown("a//b"); }},
    {"plain_key", [] { is_a_context("corbaloc:iiop:1.2@127.0.0.1:" + port + "/NameService"); }},
    {"is_a",
     [] {
         CORBA::Object_var object = find(url("a/b.kind"));
         ensure(object->_is_a(NAMED) && !object->_is_a("IDL:Interop/Other:1.0"), "it is not what it is");
     }},
    {"non_existent",
     [] {
         ensure(!find(url("a/b.kind"))->_non_existent(), "it does not exist");
         ensure(find("corbaloc::127.0.0.1:" + port + "/nobody")->_non_existent(), "what nobody has ever made exists");
     }},
    {"is_equivalent",
     [] {
         CORBA::Object_var one = find(url("a/b.kind")), other = find(url(ESCAPED)), all = find(context());
         ensure(one->_is_equivalent(other), "it is two");
         ensure(!one->_is_equivalent(all), "it is everything");
     }},
};

}  // namespace

int main(int argc, char **argv) {
    orb = CORBA::ORB_init(argc, argv);
    if (argc != 3 || std::string(argv[1]) != "--call") {
        std::cerr << "usage: names --call PORT\n";
        return 2;
    }
    port = argv[2];
    int failed = 0;
    for (const auto &[name, run] : CASES) {
        std::string what;
        try {
            run();
        } catch (const CORBA::SystemException &error) {
            what = std::string(error._name()) + " " + error.NP_minorString();
        } catch (const std::exception &error) {
            what = error.what();
        }
        if (what.empty()) {
            std::cout << "ok names/" << name << "\n";
        } else {
            std::cout << "FAIL names/" << name << ": " << what << "\n";
            ++failed;
        }
    }
    orb->destroy();
    return failed ? 1 : 0;
}
