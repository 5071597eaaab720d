// A client whose server ends: `activated` binds a name in the initial reference NameService, whose server the activator
// starts. For each line of its input, which tells that the server was killed, it calls the context again by the reference
// that it has had from the beginning. Prints `ok NAME` or `FAIL NAME: reason` for each call.
#include <functional>
#include <iostream>
#include <string>

#include <omniORB4/CORBA.h>
#include <omniORB4/Naming.hh>

namespace {

CosNaming::Name name(const char *id) {
    CosNaming::Name name(1);
    name.length(1);
    name[0].id = id;
    return name;
}

bool check(const std::string &title, const std::function<void()> &call) {
    try {
        call();
    } catch (const CORBA::SystemException &error) {
        std::cout << "FAIL " << title << ": " << error._name() << " " << error.NP_minorString() << std::endl;
        return false;
    } catch (const CORBA::Exception &error) {
        std::cout << "FAIL " << title << ": " << error._name() << std::endl;
        return false;
    }
    std::cout << "ok " << title << std::endl;
    return true;
}

}  // namespace

int main(int argc, char **argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CosNaming::NamingContext_var context;
    bool good = check("bind", [&] {
        CORBA::Object_var initial = orb->resolve_initial_references("NameService");
        CosNaming::NamingContext_var root = CosNaming::NamingContext::_narrow(initial);
        context = root->bind_new_context(name("omniorb"));
        CORBA::Object_var object = orb->string_to_object("corbaloc::127.0.0.1:9/grace");
        context->bind(name("grace"), object);
    });
    std::string line;
    for (int kills = 1; good && std::getline(std::cin, line); ++kills) {
        good = check("resolve/" + std::to_string(kills), [&] { CORBA::Object_var(context->resolve(name("grace"))); });
    }
    orb->destroy();
    return good ? 0 : 1;
}
