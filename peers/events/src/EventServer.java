import java.util.Properties;
import org.jacorb.events.EventChannelImpl;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/** One channel of JacORB's event service, without a naming service. Prints its reference. */
final class EventServer {
    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, new Properties());
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        EventChannelImpl channel = new EventChannelImpl(orb, root);
        System.out.println(orb.object_to_string(root.servant_to_reference(channel)));
        orb.run();
    }
}
