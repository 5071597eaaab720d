import Plant.Alarms;
import Plant.AlarmsHelper;
import Plant.PullAlarms;
import Plant.PullAlarmsHelper;
import Plant.Severity;
import Plant.SeverityHelper;
import org.omg.CORBA.IntHolder;
import org.omg.CosNotification.Property;
import org.omg.CosNotification.PropertySeqHelper;
import org.omg.CosNotification.StructuredEvent;
import org.omg.CosNotifyChannelAdmin.ClientType;
import org.omg.CosNotifyChannelAdmin.ProxyPullSupplier;
import org.omg.CosNotifyChannelAdmin.ProxyPullSupplierHelper;
import org.omg.CosNotifyChannelAdmin.ProxyType;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPullSupplier;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPullSupplierHelper;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushConsumer;
import org.omg.CosNotifyChannelAdmin.StructuredProxyPushConsumerHelper;
import org.omg.CosTypedEventChannelAdmin.InterfaceNotSupported;
import org.omg.CosTypedEventChannelAdmin.NoSuchImplementation;
import org.omg.CosTypedEventComm.TypedPullSupplierHelper;
import org.omg.CosTypedEventComm.TypedPushConsumerHelper;
import org.omg.CosTypedNotifyChannelAdmin.TypedConsumerAdmin;
import org.omg.CosTypedNotifyChannelAdmin.TypedEventChannel;
import org.omg.CosTypedNotifyChannelAdmin.TypedEventChannelFactory;
import org.omg.CosTypedNotifyChannelAdmin.TypedEventChannelFactoryHelper;
import org.omg.CosTypedNotifyChannelAdmin.TypedProxyPullConsumer;
import org.omg.CosTypedNotifyChannelAdmin.TypedProxyPullSupplier;
import org.omg.CosTypedNotifyChannelAdmin.TypedProxyPushConsumer;
import org.omg.CosTypedNotifyChannelAdmin.TypedProxyPushSupplier;
import org.omg.CosTypedNotifyChannelAdmin.TypedSupplierAdmin;

/** Suppliers and consumers of a typed channel that the factory creates, and its events in the other forms. */
final class TypedNotificationClient {
    public static void main(String[] arguments) throws Exception {
        Peers peers = new Peers(arguments);
        TypedEventChannelFactory factory =
            TypedEventChannelFactoryHelper.narrow(peers.orb.string_to_object(arguments[0]));
        IntHolder id = new IntHolder();
        TypedEventChannel channel = factory.create_typed_channel(new Property[0], new Property[0], id);
        TypedConsumerAdmin consumers = channel.default_consumer_admin();
        TypedSupplierAdmin suppliers = channel.default_supplier_admin();
        Cases.check("the typed channels of the factory", () -> {
            Cases.equal(factory.get_typed_event_channel(id.value)._is_equivalent(channel), true);
            Cases.equal(factory.get_all_typed_channels().length, 1);
            try {
                consumers.obtain_typed_notification_push_supplier("IDL:Plant/Boiler:1.0", new IntHolder());
                throw new IllegalStateException("it was accepted");
            } catch (NoSuchImplementation expected) {
                // the standard's exception
            }
            try {
                consumers.obtain_typed_notification_pull_supplier(AlarmsHelper.id(), new IntHolder());
                throw new IllegalStateException("it was accepted");
            } catch (InterfaceNotSupported expected) {
                // it is no pull interface
            }
        });
        TypedProxyPushConsumer proxy =
            suppliers.obtain_typed_notification_push_consumer(AlarmsHelper.id(), new IntHolder());
        proxy.connect_typed_push_supplier(null);
        Alarms supplier = AlarmsHelper.narrow(proxy.get_typed_consumer());
        Cases.check("calls in each form", () -> {
            Typed.AlarmsImpl alarms = new Typed.AlarmsImpl();
            TypedProxyPushSupplier pushed =
                consumers.obtain_typed_notification_push_supplier(AlarmsHelper.id(), new IntHolder());
            Cases.equal(pushed.MyType(), ProxyType.PUSH_TYPED);
            Typed.Consumer consumer = new Typed.Consumer(peers.serve(alarms));
            pushed.connect_typed_push_consumer(TypedPushConsumerHelper.narrow(peers.serve(consumer)));
            StructuredProxyPullSupplier structured = StructuredProxyPullSupplierHelper.narrow(
                consumers.obtain_notification_pull_supplier(ClientType.STRUCTURED_EVENT, new IntHolder()));
            structured.connect_structured_pull_consumer(null);
            ProxyPullSupplier values = ProxyPullSupplierHelper.narrow(
                consumers.obtain_notification_pull_supplier(ClientType.ANY_EVENT, new IntHolder()));
            values.connect_any_pull_consumer(null);
            supplier.raised("boiler", 7, Severity.major);
            alarms.received.expect("boiler 7 1");
            StructuredEvent event = structured.pull_structured_event();
            Cases.equal(event.header.fixed_header.event_type.type_name, "%TYPED");
            expectAlarm(event.filterable_data);
            expectAlarm(PropertySeqHelper.extract(values.pull()));
            // The other forms are calls.
            StructuredProxyPushConsumer pushes = StructuredProxyPushConsumerHelper.narrow(
                suppliers.obtain_notification_push_consumer(ClientType.STRUCTURED_EVENT, new IntHolder()));
            pushes.connect_structured_push_supplier(null);
            pushes.push_structured_event(event);
            alarms.received.expect("boiler 7 1");
            structured.disconnect_structured_pull_supplier();
            values.disconnect_pull_supplier();
            pushes.disconnect_structured_push_consumer();
            pushed.disconnect_push_supplier();
        });
        Cases.check("calls by pull", () -> {
            TypedProxyPullSupplier pulled =
                consumers.obtain_typed_notification_pull_supplier(PullAlarmsHelper.id(), new IntHolder());
            Cases.equal(pulled.MyType(), ProxyType.PULL_TYPED);
            pulled.connect_typed_pull_consumer(null);
            PullAlarms consumer = PullAlarmsHelper.narrow(pulled.get_typed_supplier());
            supplier.stopped("pump");
            supplier.raised("boiler", 7, Severity.major);
            Typed.expectAlarm(consumer, "boiler 7 1");
            Typed.expectStopped(consumer, "pump");
            TypedProxyPullConsumer pulls =
                suppliers.obtain_typed_notification_pull_consumer(PullAlarmsHelper.id(), new IntHolder());
            Typed.Supplier fans = new Typed.Supplier(peers.serve(new Typed.PullAlarmsImpl()));
            pulls.connect_typed_pull_supplier(TypedPullSupplierHelper.narrow(peers.serve(fans)));
            Typed.expectStopped(consumer, "fan 0");
            Typed.expectStopped(consumer, "fan 1");
            Typed.expectNothing(consumer);
            pulls.disconnect_pull_consumer();
            pulled.disconnect_pull_supplier();
        });
        Cases.check("the end of the typed channel", () -> {
            channel.destroy();
            Cases.equal(factory.get_all_typed_channels().length, 0);
        });
        Cases.exit();
    }

    private static void expectAlarm(Property[] properties) {
        Cases.equal(properties[0].name, "operation");
        Cases.equal(properties[0].value.extract_string(), "::Plant::Alarms::raised");
        Cases.equal(properties[1].name + properties[2].name + properties[3].name, "unitlevelhow_bad");
        Cases.equal(properties[1].value.extract_string(), "boiler");
        Cases.equal(properties[2].value.extract_long(), 7);
        Cases.equal(SeverityHelper.extract(properties[3].value), Severity.major);
    }
}
