package peer;

import static peer.Suite.equal;
import static peer.Suite.raises;

import Interop.*;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.ObjectHolder;

/** References and their properties; a diamond of interfaces. */
final class ObjectCases {
    private final Broker broker;
    private final Suite suite;

    ObjectCases(Broker broker, Suite suite) {
        this.broker = broker;
        this.suite = suite;
    }

    void objects(Objects target) {
        suite.run("objects/make", () -> {
            Node node = target.make(-5);
            equal("id", node.id(), -5);
            node.tell("Gr\u00fc\u00df");
            raises(org.omg.CORBA.BAD_PARAM.class, () -> ObjectsHelper.narrow(node));
        });
        suite.run("objects/discard", () -> {
            Node node = target.make(6);
            equal("id", node.id(), 6);
            equal("gone before", node._non_existent(), false);
            target.discard(node);
            equal("gone after", node._non_existent(), true);
            equal("completed", raises(OBJECT_NOT_EXIST.class, node::id).completed, CompletionStatus.COMPLETED_NO);
        });
        suite.run("objects/dangling", () -> {
            Node node = target.dangling();
            raises(OBJECT_NOT_EXIST.class, node::id);
        });
        passed(target);
        suite.run("objects/sum", () -> equal("sum", target.sum(new Node[] {target.make(100), target.make(200), null}), 299L));
        suite.run("objects/call-back", () -> callBack(target));
        suite.run("objects/forwarded", () -> {
            Node node = target.forwarded(71);
            equal("id", node.id(), 71);
            equal("id again", node.id(), 71);
            equal("id over two", target.forwarded_twice(72).id(), 72);
            target.forwarded(73).tell("a one-way call has no reply to forward it with");
        });
    }

    private void passed(Objects target) {
        suite.run("objects/pass", () -> {
            Node a = target.make(1);
            NodeHolder b = new NodeHolder(target.make(2));
            NodeHolder c = new NodeHolder();
            Node result = target.pass(a, b, c);
            equal("result", result.id(), 1);
            equal("b", b.value.id(), 1);
            equal("c", c.value.id(), 2);
            equal("same object", result._is_equivalent(a), true);
        });
        suite.run("objects/pass-nil", () -> {
            NodeHolder b = new NodeHolder(target.make(2));
            NodeHolder c = new NodeHolder();
            equal("result is nil", target.pass(null, b, c), null);
            equal("b is nil", b.value, null);
            equal("c", c.value.id(), 2);
            NodeHolder wasNil = new NodeHolder();
            Node result = target.pass(c.value, b, wasNil);
            equal("c is nil", wasNil.value, null);
            equal("result", result.id(), 2);
        });
        suite.run("objects/pass-object", () -> {
            ObjectHolder b = new ObjectHolder(target);
            ObjectHolder c = new ObjectHolder();
            equal("id", NodeHelper.narrow(target.pass_object(target.make(3), b, c)).id(), 3);
            equal("c is the factory", c.value._is_a(ObjectsHelper.id()), true);
            equal("c is no node", c.value._is_a(NodeHelper.id()), false);
            b.value = null;
            equal("nil", target.pass_object(null, b, c), null);
            equal("nil", b.value == null && c.value == null, true);
        });
        suite.run("objects/pass-seq", () -> {
            Node[] back = target.pass_seq(new Node[] {target.make(10), null, target.make(30)});
            equal("length", back.length, 3);
            equal("first", back[0].id(), 30);
            equal("second is nil", back[1], null);
            equal("third", back[2].id(), 10);
            equal("length", target.pass_seq(new Node[0]).length, 0);
        });
        suite.run("objects/pass-link", () -> {
            Link back = target.pass_link(new Link((byte) 9, target.make(1), null, target));
            equal("lead", back.lead, (byte) 9);
            equal("from is nil", back.from, null);
            equal("to", back.to.id(), 1);
            equal("object", back.any_object._is_equivalent(target), true);
        });
    }

    /** The server calls an object of the client during the client's call. */
    private void callBack(Objects target) throws Exception {
        byte[] id = broker.root.activate_object(new ObjectsImpl.OneNode(40));
        Node own = NodeHelper.narrow(broker.root.id_to_reference(id));
        Node[] nodes = {own, target.make(2)};
        equal("sum", target.sum(nodes), 42L);
        equal("our own", target.pass_seq(nodes)[1].id(), 40);
        broker.root.deactivate_object(id);
        raises(OBJECT_NOT_EXIST.class, () -> target.sum(nodes));
    }

    void inheritance(Lowest target) {
        suite.run("inheritance/inherited", () -> {
            equal("base", target.base_name(), "base");
            equal("left", target.left_name(), "left");
            equal("right", target.right_name(), "right");
            equal("diamond", target.diamond_name(), "diamond");
            target.base_value(-77);
            equal("value", target.base_value(), -77);
        });
        suite.run("inheritance/widened", () -> {
            Right right = target;
            equal("base", right.base_name(), "base");
            equal("left", LeftHelper.narrow((org.omg.CORBA.Object) target).left_name(), "left");
            equal("is a base", target._is_a(BaseHelper.id()), true);
            equal("is a hub", target._is_a(HubHelper.id()), false);
        });
        suite.run("inheritance/descend", () -> {
            Diamond[] found = target.descend(target);
            equal("length", found.length, 2);
            equal("first", found[0].diamond_name(), "diamond");
            equal("second", found[1].left_name(), "left");
            equal("how", raises(Interop.LowestPackage.Deep.class, () -> target.descend(null)).how, "nil");
        });
    }
}
