package peer;

import Interop.Link;
import Interop.Node;
import Interop.NodeHelper;
import Interop.NodeHolder;
import Interop.NodePOA;
import Interop.ObjectsPOA;
import org.omg.CORBA.ObjectHolder;
import org.omg.CORBA.ServerRequest;
import org.omg.PortableServer.DynamicImplementation;
import org.omg.PortableServer.ForwardRequest;
import org.omg.PortableServer.POA;

/** Creates nodes, transfers references, and forwards. */
final class ObjectsImpl extends ObjectsPOA {
    /** A node with a number. */
    static final class OneNode extends NodePOA {
        private final int id;

        OneNode(int id) {
            this.id = id;
        }

        @Override public int id() { return id; }
        @Override public void tell(String what) {}
    }

    /**
     * Replies to every request with LOCATION_FORWARD. A servant manager cannot: without a servant the thread of the request
     * dies (README.md), and no reply is sent.
     */
    static final class ForwardingNode extends DynamicImplementation implements org.jacorb.orb.Forwarder {
        private final org.omg.CORBA.Object target;

        ForwardingNode(org.omg.CORBA.Object target) {
            this.target = target;
        }

        @Override public void invoke(ServerRequest request) {
            ((org.jacorb.orb.dsi.ServerRequest) request).setLocationForward(new ForwardRequest(target));
        }

        @Override public String[] _all_interfaces(POA adapter, byte[] id) {
            return new String[] {NodeHelper.id()};
        }
    }

    private final Broker broker;

    ObjectsImpl(Broker broker) {
        this.broker = broker;
    }

    @Override public Node make(int id) {
        return NodeHelper.narrow(broker.activate(new OneNode(id)));
    }

    @Override public void discard(Node which) {
        try {
            broker.root.deactivate_object(broker.root.reference_to_id(which));
        } catch (org.omg.CORBA.UserException error) {
            throw new org.omg.CORBA.BAD_PARAM(error.toString());
        }
    }

    @Override public Node pass(Node a, NodeHolder b, NodeHolder c) {
        c.value = b.value;
        b.value = a;
        return a;
    }

    @Override public org.omg.CORBA.Object pass_object(org.omg.CORBA.Object a, ObjectHolder b, ObjectHolder c) {
        c.value = b.value;
        b.value = a;
        return a;
    }

    @Override public Node[] pass_seq(Node[] nodes) {
        Node[] reversed = new Node[nodes.length];
        for (int i = 0; i < nodes.length; ++i) reversed[i] = nodes[nodes.length - 1 - i];
        return reversed;
    }

    @Override public Link pass_link(Link way) {
        return new Link(way.lead, way.to, way.from, way.any_object);
    }

    @Override public long sum(Node[] nodes) {
        long total = 0;
        for (Node node : nodes) total += node == null ? -1 : node.id();
        return total;
    }

    @Override public Node forwarded(int id) {
        return forward(make(id));
    }

    @Override public Node forwarded_twice(int id) {
        return forward(forwarded(id));
    }

    private Node forward(Node target) {
        return NodeHelper.unchecked_narrow(broker.activate(new ForwardingNode(target)));
    }

    @Override public Node dangling() {
        try {
            return NodeHelper.unchecked_narrow(broker.root.create_reference(NodeHelper.id()));
        } catch (org.omg.CORBA.UserException error) {
            throw new IllegalStateException(error);
        }
    }
}
