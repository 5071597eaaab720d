import java.util.Arrays;
import java.util.TreeSet;
import org.omg.CORBA.Contained;
import org.omg.CORBA.DefinitionKind;
import org.omg.CORBA.ExceptionDefHelper;
import org.omg.CORBA.InterfaceDef;
import org.omg.CORBA.InterfaceDefHelper;
import org.omg.CORBA.InterfaceDefPackage.FullInterfaceDescription;
import org.omg.CORBA.ModuleDef;
import org.omg.CORBA.ModuleDefHelper;
import org.omg.CORBA.ORB;
import org.omg.CORBA.OperationDescription;
import org.omg.CORBA.PrimitiveKind;
import org.omg.CORBA.Repository;
import org.omg.CORBA.RepositoryHelper;
import org.omg.CORBA.StructDef;
import org.omg.CORBA.StructMember;
import org.omg.CORBA.TCKind;

/**
 * Reads and changes the interface repository that is the initial reference `InterfaceRepository`, which has
 * `examples/bank/bank.idl`; the argument is an account whose server uses that repository. Prints `ok NAME` or
 * `FAIL NAME: reason` for each case.
 */
public final class RepositoryClient {
    private static final String ACCOUNT = "IDL:Bank/Account:1.0";

    private RepositoryClient() {}

    private static TreeSet<String> names(Contained[] contents) {
        TreeSet<String> names = new TreeSet<>();
        for (Contained content : contents) names.add(content.name());
        return names;
    }

    private static TreeSet<String> set(String... names) {
        return new TreeSet<>(Arrays.asList(names));
    }

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, null);
        Repository repository = RepositoryHelper.narrow(orb.resolve_initial_references("InterfaceRepository"));
        InterfaceDef account = InterfaceDefHelper.narrow(repository.lookup_id(ACCOUNT));

        Cases.check("lookup_id", () -> {
            Cases.equal(account.name(), "Account");
            Cases.equal(account.absolute_name(), "::Bank::Account");
            Cases.equal(account.version(), "1.0");
            Cases.equal(account.def_kind(), DefinitionKind.dk_Interface);
            Cases.equal(repository.lookup_id("IDL:Bank/Nothing:1.0") == null, true);
        });
        Cases.check("lookup", () -> Cases.equal(repository.lookup("::Bank::Overdrawn").id(), "IDL:Bank/Overdrawn:1.0"));
        Cases.check("contents", () -> {
            ModuleDef bank = ModuleDefHelper.narrow(repository.lookup("Bank"));
            Cases.equal(names(bank.contents(DefinitionKind.dk_all, true)), set("Account", "Overdrawn"));
            Cases.equal(names(account.contents(DefinitionKind.dk_Operation, true)), set("deposit", "withdraw"));
            Cases.equal(names(account.contents(DefinitionKind.dk_Attribute, true)), set("owner"));
        });
        Cases.check("describe_interface", () -> {
            FullInterfaceDescription described = account.describe_interface();
            Cases.equal(described.id, ACCOUNT);
            Cases.equal(described.operations.length, 2);
            Cases.equal(described.attributes[0].type.kind(), TCKind.tk_string);
            for (OperationDescription operation : described.operations) {
                Cases.equal(operation.parameters[0].name, "cents");
                Cases.equal(operation.parameters[0].type.kind(), TCKind.tk_longlong);
                Cases.equal(operation.exceptions.length, operation.name.equals("withdraw") ? 1 : 0);
            }
        });
        Cases.check("exception", () -> {
            StructMember[] members = ExceptionDefHelper.narrow(repository.lookup("::Bank::Overdrawn")).members();
            Cases.equal(members.length, 1);
            Cases.equal(members[0].name, "balance");
            Cases.equal(members[0].type.kind(), TCKind.tk_longlong);
        });
        Cases.check("type", () -> {
            Cases.equal(account.type().kind(), TCKind.tk_objref);
            Cases.equal(account.type().id(), ACCOUNT);
        });
        Cases.check("is_a", () -> {
            Cases.equal(account.is_a(ACCOUNT), true);
            Cases.equal(account.is_a("IDL:Bank/Overdrawn:1.0"), false);
        });
        Cases.check("get_interface", () -> {
            org.omg.CORBA.Object object = orb.string_to_object(arguments[0]);
            Cases.equal(InterfaceDefHelper.narrow(object._get_interface_def()).id(), ACCOUNT);
        });
        Cases.check("create_and_destroy", () -> {
            ModuleDef made = repository.create_module("IDL:Made:1.0", "Made", "1.0");
            StructMember member =
                new StructMember("number", orb.get_primitive_tc(TCKind.tk_long), repository.get_primitive(PrimitiveKind.pk_long));
            StructDef pair = made.create_struct("IDL:Made/Pair:1.0", "Pair", "1.0", new StructMember[] {member});
            Cases.equal(pair.type().member_name(0), "number");
            Cases.equal(names(made.contents(DefinitionKind.dk_all, true)), set("Pair"));
            made.destroy();
            Cases.equal(repository.lookup("::Made::Pair") == null, true);
        });
        Cases.exit();
    }
}
