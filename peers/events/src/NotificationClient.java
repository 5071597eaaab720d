import java.util.Arrays;
import java.util.stream.Collectors;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CosEventChannelAdmin.AlreadyConnected;
import org.omg.CosEventComm.Disconnected;
import org.omg.CosEventComm.PushConsumerHelper;
import org.omg.CosEventComm.PushConsumerPOA;
import org.omg.CosNotification.EventHeader;
import org.omg.CosNotification.EventType;
import org.omg.CosNotification.FixedEventHeader;
import org.omg.CosNotification.NamedPropertyRangeSeqHolder;
import org.omg.CosNotification.Property;
import org.omg.CosNotification.StructuredEvent;
import org.omg.CosNotification.StructuredEventHelper;
import org.omg.CosNotification.UnsupportedAdmin;
import org.omg.CosNotification.UnsupportedQoS;
import org.omg.CosNotifyChannelAdmin.AdminNotFound;
import org.omg.CosNotifyChannelAdmin.ClientType;
import org.omg.CosNotifyChannelAdmin.ConnectionAlreadyActive;
import org.omg.CosNotifyChannelAdmin.ConsumerAdmin;
import org.omg.CosNotifyChannelAdmin.EventChannel;
import org.omg.CosNotifyChannelAdmin.EventChannelFactory;
import org.omg.CosNotifyChannelAdmin.EventChannelFactoryHelper;
import org.omg.CosNotifyChannelAdmin.InterFilterGroupOperator;
import org.omg.CosNotifyChannelAdmin.ProxyNotFound;
import org.omg.CosNotifyChannelAdmin.ProxyPullSupplierHelper;
import org.omg.CosNotifyChannelAdmin.SequenceProxyPullSupplier;
import org.omg.CosNotifyChannelAdmin.SequenceProxyPullSupplierHelper;
import org.omg.CosNotifyChannelAdmin.SequenceProxyPushConsumer;
import org.omg.CosNotifyChannelAdmin.SequenceProxyPushConsumerHelper;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPullSupplier;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPullSupplierHelper;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushConsumer;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushConsumerHelper;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushSupplier;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushSupplierHelper;
import org.omg.CosNotifyComm.StructuredPushConsumerHelper;
import org.omg.CosNotifyComm.StructuredPushConsumerPOA;
import org.omg.CosNotifyComm.StructuredPushSupplierHelper;
import org.omg.CosNotifyComm.StructuredPushSupplierPOA;
import org.omg.CosNotifyFilter.CallbackNotFound;
import org.omg.CosNotifyFilter.ConstraintExp;
import org.omg.CosNotifyFilter.ConstraintNotFound;
import org.omg.CosNotifyFilter.Filter;
import org.omg.CosNotifyFilter.FilterNotFound;
import org.omg.CosNotifyFilter.InvalidConstraint;
import org.omg.CosNotifyFilter.InvalidGrammar;

/** Suppliers, consumers, filters and properties of a channel that the factory creates. */
final class NotificationClient {
    private static Peers peers;

    static final class Consumer extends StructuredPushConsumerPOA {
        final Peers.Received<String> received = new Peers.Received<>();
        final Peers.Received<String> offers = new Peers.Received<>();

        @Override public void push_structured_event(StructuredEvent event) {
            received.add(name(event));
        }

        @Override public void offer_change(EventType[] added, EventType[] removed) {
            offers.add(types(added) + "-" + types(removed));
        }

        @Override public void disconnect_structured_push_consumer() {
            received.add("disconnected");
        }
    }

    static final class AnyConsumer extends PushConsumerPOA {
        final Peers.Received<String> received = new Peers.Received<>();

        @Override public void push(Any data) {
            boolean is_structured = data.type().equivalent(StructuredEventHelper.type());
            received.add(is_structured ? name(StructuredEventHelper.extract(data)) : String.valueOf(data.extract_long()));
        }

        @Override public void disconnect_push_consumer() {}
    }

    static final class Supplier extends StructuredPushSupplierPOA {
        final Peers.Received<String> subscriptions = new Peers.Received<>();

        @Override public void subscription_change(EventType[] added, EventType[] removed) {
            subscriptions.add(types(added) + "-" + types(removed));
        }

        @Override public void disconnect_structured_push_supplier() {}
    }

    private static String name(StructuredEvent event) {
        return event.header.fixed_header.event_name;
    }

    private static String types(EventType[] types) {
        return Arrays.stream(types).map(type -> type.domain_name + "/" + type.type_name).collect(Collectors.joining(","));
    }

    private static StructuredEvent event(String name, int level) {
        EventType type = new EventType("Plant", "Alarm");
        Property[] fields = {new Property("level", peers.of(level))};
        EventHeader header = new EventHeader(new FixedEventHeader(type, name), new Property[0]);
        return new StructuredEvent(header, fields, peers.of("body"));
    }

    private static Property property(String name, int value) {
        Any any = peers.orb.create_any();
        any.insert_short((short) value);
        return new Property(name, any);
    }

    public static void main(String[] arguments) throws Exception {
        peers = new Peers(arguments);
        EventChannelFactory factory = EventChannelFactoryHelper.narrow(peers.orb.string_to_object(arguments[0]));
        IntHolder id = new IntHolder();
        EventChannel channel = factory.create_channel(new Property[] {property("OrderPolicy", 1)}, new Property[0], id);
        Cases.check("the factory's channels", () -> {
            Cases.equal(Arrays.stream(factory.get_all_channels()).anyMatch(it -> it == id.value), true);
            Cases.equal(factory.get_event_channel(id.value)._is_equivalent(channel), true);
            try {
                factory.get_event_channel(12_345);
                throw new IllegalStateException("it was accepted");
            } catch (org.omg.CosNotifyChannelAdmin.ChannelNotFound expected) {
                // the standard's exception
            }
        });
        Cases.check("properties", () -> {
            boolean has_policy = Arrays.stream(channel.get_qos())
                .anyMatch(it -> it.name.equals("OrderPolicy") && it.value.extract_short() == 1);
            Cases.equal(has_policy, true);
            try {
                channel.set_qos(new Property[] {property("NoSuchProperty", 1)});
                throw new IllegalStateException("it was accepted");
            } catch (UnsupportedQoS expected) {
                Cases.equal(expected.qos_err[0].name, "NoSuchProperty");
            }
        });
        IntHolder proxy_id = new IntHolder();
        StructuredProxyPushConsumer pushes = StructuredProxyPushConsumerHelper.narrow(
            channel.default_supplier_admin().obtain_notification_push_consumer(ClientType.STRUCTURED_EVENT, proxy_id));
        Supplier supplier = new Supplier();
        pushes.connect_structured_push_supplier(StructuredPushSupplierHelper.narrow(peers.serve(supplier)));
        Consumer consumer = new Consumer();
        ConsumerAdmin admin = channel.new_for_consumers(InterFilterGroupOperator.AND_OP, new IntHolder());
        StructuredProxyPushSupplier pushed = StructuredProxyPushSupplierHelper.narrow(
            admin.obtain_notification_push_supplier(ClientType.STRUCTURED_EVENT, proxy_id));
        Cases.check("structured events through a filter", () -> {
            Filter filter = channel.default_filter_factory().create_filter("EXTENDED_TCL");
            ConstraintExp constraint = new ConstraintExp(new EventType[] {new EventType("Plant", "*")}, "$level > 5");
            filter.add_constraints(new ConstraintExp[] {constraint});
            try {
                filter.add_constraints(new ConstraintExp[] {new ConstraintExp(new EventType[0], "$level >")});
                throw new IllegalStateException("it was accepted");
            } catch (InvalidConstraint expected) {
                Cases.equal(expected.constr.constraint_expr, "$level >");
            }
            Cases.equal(filter.match_structured(event("x", 6)), true);
            Cases.equal(filter.match_structured(event("x", 5)), false);
            pushed.add_filter(filter);
            pushed.connect_structured_push_consumer(StructuredPushConsumerHelper.narrow(peers.serve(consumer)));
            for (int level = 4; level < 9; ++level) pushes.push_structured_event(event("level " + level, level));
            for (int level = 6; level < 9; ++level) consumer.received.expect("level " + level);
            pushed.remove_all_filters();
        });
        Cases.check("suspend and resume", () -> {
            pushed.suspend_connection();
            pushes.push_structured_event(event("suspended", 1));
            consumer.received.expectNothing();
            pushed.resume_connection();
            consumer.received.expect("suspended");
        });
        Cases.check("pull of structured events and sequences", () -> {
            StructuredProxyPullSupplier pulled = StructuredProxyPullSupplierHelper.narrow(
                channel.default_consumer_admin().obtain_notification_pull_supplier(ClientType.STRUCTURED_EVENT, proxy_id));
            pulled.connect_structured_pull_consumer(null);
            SequenceProxyPullSupplier batches = SequenceProxyPullSupplierHelper.narrow(
                channel.default_consumer_admin().obtain_notification_pull_supplier(ClientType.SEQUENCE_EVENT, proxy_id));
            batches.connect_sequence_pull_consumer(null);
            SequenceProxyPushConsumer sequences = SequenceProxyPushConsumerHelper.narrow(
                channel.default_supplier_admin().obtain_notification_push_consumer(ClientType.SEQUENCE_EVENT, proxy_id));
            sequences.connect_sequence_push_supplier(null);
            sequences.push_structured_events(new StructuredEvent[] {event("a", 1), event("b", 2), event("c", 3)});
            for (String name : new String[] {"a", "b", "c"}) {
                Cases.equal(name(pulled.pull_structured_event()), name);
                consumer.received.expect(name);
            }
            BooleanHolder has_event = new BooleanHolder();
            pulled.try_pull_structured_event(has_event);
            Cases.equal(has_event.value, false);
            String names = "";
            while (names.length() < 3) {
                for (StructuredEvent it : batches.pull_structured_events(2)) names += name(it);
            }
            Cases.equal(names, "abc");
            pulled.disconnect_structured_pull_supplier();
            batches.disconnect_sequence_pull_supplier();
            sequences.disconnect_sequence_push_consumer();
        });
        Cases.check("values and structured events become one another", () -> {
            AnyConsumer untyped = new AnyConsumer();
            org.omg.CosEventChannelAdmin.ProxyPushSupplier proxy = channel.for_consumers().obtain_push_supplier();
            proxy.connect_push_consumer(PushConsumerHelper.narrow(peers.serve(untyped)));
            pushes.push_structured_event(event("structured", 1));
            untyped.received.expect("structured");
            consumer.received.expect("structured");
            org.omg.CosEventChannelAdmin.ProxyPushConsumer values = channel.for_suppliers().obtain_push_consumer();
            values.connect_push_supplier(null);
            values.push(peers.of(5));
            untyped.received.expect("5");
            consumer.received.expect(""); // the type of such an event is %ANY
            values.disconnect_push_consumer();
            proxy.disconnect_push_supplier();
        });
        Cases.check("offers and subscriptions", () -> {
            EventType alarm = new EventType("Plant", "Alarm");
            pushes.offer_change(new EventType[] {alarm}, new EventType[0]);
            consumer.offers.expect("Plant/Alarm-");
            pushed.subscription_change(new EventType[] {alarm}, new EventType[0]);
            supplier.subscriptions.expect("Plant/Alarm-");
        });
        Cases.check("exceptions", () -> {
            Property[] unknown = {property("NoSuchProperty", 1)};
            Cases.raises(UnsupportedAdmin.class, () -> channel.set_admin(unknown));
            Cases.raises(UnsupportedQoS.class, () -> channel.validate_qos(unknown, new NamedPropertyRangeSeqHolder()));
            Cases.raises(UnsupportedQoS.class, () -> pushes.validate_event_qos(unknown, new NamedPropertyRangeSeqHolder()));
            Cases.raises(UnsupportedAdmin.class, () -> factory.create_channel(new Property[0], unknown, new IntHolder()));
            Cases.raises(AdminNotFound.class, () -> channel.get_consumeradmin(12_345));
            Cases.raises(AdminNotFound.class, () -> channel.get_supplieradmin(12_345));
            Cases.raises(ProxyNotFound.class, () -> admin.get_proxy_supplier(12_345));
            Cases.raises(AlreadyConnected.class, () -> pushes.connect_structured_push_supplier(null));
            Cases.raises(ConnectionAlreadyActive.class, () -> pushed.resume_connection());
            Cases.raises(FilterNotFound.class, () -> pushed.remove_filter(12_345));
            Cases.raises(InvalidGrammar.class, () -> channel.default_filter_factory().create_filter("SQL"));
            Filter filter = channel.default_filter_factory().create_filter("EXTENDED_TCL");
            Cases.raises(ConstraintNotFound.class, () -> filter.get_constraints(new int[] {7}));
            Cases.raises(CallbackNotFound.class, () -> filter.detach_callback(7));
            filter.destroy();
            StructuredProxyPullSupplier unconnected = StructuredProxyPullSupplierHelper.narrow(
                admin.obtain_notification_pull_supplier(ClientType.STRUCTURED_EVENT, proxy_id));
            Cases.raises(Disconnected.class, () -> unconnected.pull_structured_event());
        });
        Cases.check("the end of the channel", () -> {
            channel.destroy();
            consumer.received.expect("disconnected");
            Cases.equal(Arrays.stream(factory.get_all_channels()).anyMatch(it -> it == id.value), false);
        });
        Cases.exit();
    }
}
