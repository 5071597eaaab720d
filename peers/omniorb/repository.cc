// A client of an interface repository: `repository URL-OF-OBJECT URL-OF-REPOSITORY` finds the object's interface by
// _get_interface, walks through the repository, and creates, changes and destroys a definition.
#include <iostream>
#include <stdexcept>
#include <string>

// Stubs of the interface repository are in its library of dynamic types.
#define ENABLE_CLIENT_IR_SUPPORT
#include <omniORB4/CORBA.h>

namespace {

void ensure(bool good, const char *what) {
    if (!good) throw std::runtime_error(what);
}

void discover(CORBA::Object_ptr object) {
    CORBA::InterfaceDef_var definition = object->_get_interface();
    ensure(!CORBA::is_nil(definition), "_get_interface returns no InterfaceDef");
    CORBA::InterfaceDef::FullInterfaceDescription_var described = definition->describe_interface();
    std::cout << described->id.in() << " with " << described->operations.length() << " operations\n";
    ensure(object->_is_a(described->id), "the description is that of another interface");
    ensure(described->operations.length() > 0, "it has no operations");
    ensure(definition->is_a("IDL:omg.org/CORBA/Object:1.0"), "it is no object");
}

void create(CORBA::Repository_ptr repository) {
    CORBA::PrimitiveDef_var number = repository->get_primitive(CORBA::pk_long);
    CORBA::SequenceDef_var numbers = repository->create_sequence(7, number);
    CORBA::ModuleDef_var module = repository->create_module("IDL:Omni:1.0", "Omni", "1.0");
    CORBA::StructMemberSeq members(1);
    members.length(1);
    members[0].name = CORBA::string_dup("them");
    members[0].type = CORBA::TypeCode::_duplicate(CORBA::_tc_void);
    members[0].type_def = CORBA::IDLType::_duplicate(numbers);
    CORBA::StructDef_var structure = module->create_struct("IDL:Omni/S:1.0", "S", "1.0", members);
    CORBA::TypeCode_var type = structure->type();
    ensure(type->kind() == CORBA::tk_struct && type->member_count() == 1, "the type code is another");
    CORBA::TypeCode_var member = type->member_type(0);
    ensure(member->kind() == CORBA::tk_sequence && member->length() == 7, "the member is of another type");
    CORBA::Contained::Description_var described = structure->describe();
    const CORBA::TypeDescription *description;
    ensure(described->kind == CORBA::dk_Struct && (described->value >>= description), "the description is another");
    ensure(std::string(description->defined_in) == "IDL:Omni:1.0", "it is defined elsewhere");
    CORBA::Contained_var again = repository->lookup("Omni::S");
    ensure(again->_is_equivalent(structure), "lookup finds another");
    try {
        repository->create_module("IDL:Omni:1.0", "Other", "1.0");
        throw std::runtime_error("a repository id was given twice");
    } catch (const CORBA::BAD_PARAM &error) {
        ensure((error.minor() & 0xfff) == 2, "the minor code is another");
    }
    CORBA::ContainedSeq_var contents = module->contents(CORBA::dk_all, true);
    ensure(contents->length() == 1, "the module has other contents");
    module->destroy();
    again = repository->lookup_id("IDL:Omni/S:1.0");
    ensure(CORBA::is_nil(again), "the definition still exists");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        ensure(argc == 3, "usage: repository URL-OF-OBJECT URL-OF-REPOSITORY");
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        CORBA::Object_var root = orb->string_to_object(argv[2]);
        CORBA::Repository_var repository = CORBA::Repository::_narrow(root);
        ensure(!CORBA::is_nil(repository), "this is no repository");
        discover(object);
        create(repository);
        std::cout << "ok\n";
        return 0;
    } catch (const CORBA::SystemException &error) {
        std::cerr << error._name() << " " << (error.minor() & 0xfff) << "\n";
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
    }
    return 1;
}
