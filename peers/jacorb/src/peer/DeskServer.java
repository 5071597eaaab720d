package peer;

import Desk.Item;
import Desk.NoSuchEntry;
import Desk.NotebookHelper;
import Desk.NotebookPOA;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.omg.CORBA.Any;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.LocalObject;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.TCKind;
import org.omg.CORBA.UserException;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextHelper;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.PortableServer.IdAssignmentPolicyValue;
import org.omg.PortableServer.LifespanPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.RequestProcessingPolicyValue;
import org.omg.PortableServer.Servant;
import org.omg.PortableServer.ServantActivator;

/** Notebooks in Java: the server of the guide for JacORB (`examples/porting/desk.idl`). */
public final class DeskServer {
    private DeskServer() {}

    // ANCHOR: servant
    private static final class Notebook extends NotebookPOA {
        private final String name;
        private final Map<String, Any> entries = new ConcurrentHashMap<>();

        Notebook(String name) {
            this.name = name;
        }

        @Override public String name() {
            return name;
        }

        @Override public void put(String key, Any value) {
            entries.put(key, value);
        }

        @Override public Any get(String key) throws NoSuchEntry {
            Any entry = entries.get(key);
            if (entry == null) throw new NoSuchEntry(key);
            return entry;
        }

        @Override public int total(Item also) {
            try {
                return also == null ? ownTotal() : ownTotal() + NotebookHelper.narrow(also).total(null);
            } catch (BAD_PARAM noNotebook) {
                return ownTotal();
            }
        }

        int ownTotal() {
            return entries.values().stream().filter(value -> value.type().kind() == TCKind.tk_long)
                .mapToInt(Any::extract_long).sum();
        }
    }
    // ANCHOR_END: servant

    // ANCHOR: activator
    private static final class Notebooks extends LocalObject implements ServantActivator {
        private static final long serialVersionUID = 1L;

        @Override public Servant incarnate(byte[] id, POA adapter) {
            String name = new String(id, StandardCharsets.UTF_8);
            System.out.println("opened " + name);
            return new Notebook(name);
        }

        @Override public void etherealize(byte[] id, POA adapter, Servant servant, boolean cleanup, boolean remaining) {
            if (servant instanceof Notebook) {
                Notebook notebook = (Notebook) servant;
                System.out.println("closed " + notebook.name + ": " + notebook.ownTotal());
            }
        }
    }
    // ANCHOR_END: activator

    // ANCHOR: names
    private static void bind(NamingContext root, String id, org.omg.CORBA.Object object) throws UserException {
        NameComponent context = new NameComponent("desk", "");
        try {
            root.bind_new_context(new NameComponent[] {context});
        } catch (AlreadyBound bound) {
            // By an earlier process.
        }
        root.rebind(new NameComponent[] {context, new NameComponent(id, "")}, object);
    }
    // ANCHOR_END: names

    // ANCHOR: main
    public static void main(String[] arguments) throws UserException {
        Rmi.install();
        Properties properties = new Properties();
        properties.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.put("OAIAddr", "127.0.0.1");
        properties.put("jacorb.implname", "desk");
        ORB orb = ORB.init(arguments, properties);
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        Policy[] policies = {
            root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT),
            root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID),
            root.create_request_processing_policy(RequestProcessingPolicyValue.USE_SERVANT_MANAGER),
        };
        POA desk = root.create_POA("desk", null, policies);
        desk.set_servant_manager(new Notebooks());

        NamingContext names = NamingContextHelper.narrow(orb.resolve_initial_references("NameService"));
        for (String id : new String[] {"red", "blue"}) {
            byte[] octets = id.getBytes(StandardCharsets.UTF_8);
            bind(names, id, desk.create_reference_with_id(octets, "IDL:Desk/Notebook:1.0"));
        }
        desk.the_POAManager().activate();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> desk.destroy(true, true)));
        System.out.println("ready");
        orb.run();
    }
    // ANCHOR_END: main
}
