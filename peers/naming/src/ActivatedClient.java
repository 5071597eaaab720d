import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextHelper;

/**
 * A client whose server ends: binds a name in the initial reference `NameService`, whose server the activator starts. For
 * each line of its input, which tells that the server was killed, it calls the context again by the reference that it has
 * had from the beginning.
 */
public final class ActivatedClient {
    private ActivatedClient() {}

    private static NameComponent[] name(String id) {
        return new NameComponent[] {new NameComponent(id, "")};
    }

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, null);
        NamingContext[] context = new NamingContext[1];
        Cases.check("bind", () -> {
            NamingContext root = NamingContextHelper.narrow(orb.resolve_initial_references("NameService"));
            context[0] = root.bind_new_context(name("kept"));
            context[0].bind(name("grace"), orb.string_to_object("corbaloc::127.0.0.1:9/grace"));
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (int kills = 1; input.readLine() != null; ++kills) {
            Cases.check("resolve/" + kills, () -> context[0].resolve(name("grace")));
        }
        Cases.exit();
    }
}
