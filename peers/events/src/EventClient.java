import Plant.Alarms;
import Plant.AlarmsHelper;
import Plant.Events;
import Plant.EventsHelper;
import Plant.EventsPOA;
import Plant.PullAlarms;
import Plant.PullAlarmsHelper;
import Plant.Severity;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CosEventChannelAdmin.EventChannel;
import org.omg.CosEventChannelAdmin.EventChannelHelper;
import org.omg.CosEventChannelAdmin.ProxyPullConsumer;
import org.omg.CosEventChannelAdmin.ProxyPullSupplier;
import org.omg.CosEventChannelAdmin.ProxyPushConsumer;
import org.omg.CosEventChannelAdmin.ProxyPushSupplier;
import org.omg.CosEventChannelAdmin.TypeError;
import org.omg.CosEventComm.Disconnected;
import org.omg.CosEventComm.PullSupplierHelper;
import org.omg.CosEventComm.PullSupplierPOA;
import org.omg.CosEventComm.PushConsumerHelper;
import org.omg.CosEventComm.PushConsumerPOA;
import org.omg.CosTypedEventChannelAdmin.InterfaceNotSupported;
import org.omg.CosTypedEventChannelAdmin.NoSuchImplementation;
import org.omg.CosTypedEventChannelAdmin.TypedEventChannel;
import org.omg.CosTypedEventChannelAdmin.TypedEventChannelHelper;
import org.omg.CosTypedEventChannelAdmin.TypedProxyPullSupplier;
import org.omg.CosTypedEventChannelAdmin.TypedProxyPushConsumer;
import org.omg.CosTypedEventComm.TypedPullSupplierHelper;
import org.omg.CosTypedEventComm.TypedPushConsumerHelper;

/** Suppliers and consumers of an event channel and, with a second URL, of its typed channel. */
final class EventClient {
    static final class Consumer extends PushConsumerPOA {
        final Peers.Received<String> received = new Peers.Received<>();

        @Override public void push(Any data) {
            received.add(data.type().kind().value() == org.omg.CORBA.TCKind._tk_struct
                ? Names.name(data) : String.valueOf(data.extract_long()));
        }

        @Override public void disconnect_push_consumer() {
            received.add("disconnected");
        }
    }

    /** The name of an event's structure. */
    static final class Names {
        static String name(Any data) {
            try {
                return data.type().name();
            } catch (org.omg.CORBA.TypeCodePackage.BadKind error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static final class Supplier extends PullSupplierPOA {
        private final Peers peers;
        private int next = 10;

        Supplier(Peers peers) {
            this.peers = peers;
        }

        @Override public Any pull() throws Disconnected {
            throw new Disconnected();
        }

        @Override public synchronized Any try_pull(BooleanHolder has_event) {
            has_event.value = next < 13;
            return peers.of(has_event.value ? next++ : 0);
        }

        @Override public void disconnect_pull_supplier() {}
    }

    static final class EventsImpl extends EventsPOA {
        final Peers.Received<String> received = new Peers.Received<>();

        @Override public void stopped(String unit) {
            received.add("stopped " + unit);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Peers peers = new Peers(arguments);
        EventChannel channel = EventChannelHelper.narrow(peers.orb.string_to_object(arguments[0]));
        ProxyPushConsumer pushes = channel.for_suppliers().obtain_push_consumer();
        Cases.check("push before the connection", () -> {
            try {
                pushes.push(peers.of(0));
                throw new IllegalStateException("it was accepted");
            } catch (Disconnected expected) {
                pushes.connect_push_supplier(null);
            }
        });
        Consumer consumer = new Consumer();
        ProxyPushSupplier pushed = channel.for_consumers().obtain_push_supplier();
        ProxyPullSupplier pulled = channel.for_consumers().obtain_pull_supplier();
        Cases.check("push to push and pull consumers", () -> {
            pushed.connect_push_consumer(PushConsumerHelper.narrow(peers.serve(consumer)));
            pulled.connect_pull_consumer(null);
            for (int number = 0; number < 3; ++number) pushes.push(peers.of(number));
            for (int number = 0; number < 3; ++number) consumer.received.expect(String.valueOf(number));
            for (int number = 0; number < 3; ++number) Cases.equal(pulled.pull().extract_long(), number);
            BooleanHolder has_event = new BooleanHolder();
            pulled.try_pull(has_event);
            Cases.equal(has_event.value, false);
        });
        Cases.check("connect twice", () -> {
            try {
                pulled.connect_pull_consumer(null);
                throw new IllegalStateException("it was accepted");
            } catch (org.omg.CosEventChannelAdmin.AlreadyConnected expected) {
                // the standard's exception
            }
        });
        Cases.check("pull from a supplier", () -> {
            ProxyPullConsumer pulls = channel.for_suppliers().obtain_pull_consumer();
            pulls.connect_pull_supplier(PullSupplierHelper.narrow(peers.serve(new Supplier(peers))));
            for (int number = 10; number < 13; ++number) consumer.received.expect(String.valueOf(number));
            pulls.disconnect_pull_consumer();
        });
        if (arguments.length > 1) typed(peers, arguments[1], consumer);
        Cases.check("disconnections", () -> {
            pushed.disconnect_push_supplier();
            consumer.received.expect("disconnected");
            pulled.disconnect_pull_supplier();
            try {
                pulled.pull();
                throw new IllegalStateException("it was accepted");
            } catch (Disconnected | org.omg.CORBA.OBJECT_NOT_EXIST expected) {
                // the proxy has ended
            }
        });
        Cases.exit();
    }

    private static void typed(Peers peers, String url, Consumer untyped) {
        TypedEventChannel channel = TypedEventChannelHelper.narrow(peers.orb.string_to_object(url));
        Cases.check("interfaces of typed events", () -> {
            for (String id : new String[] {"IDL:Plant/Boiler:1.0", "IDL:Plant/None:1.0"}) {
                try {
                    channel.for_suppliers().obtain_typed_push_consumer(id);
                    throw new IllegalStateException("it was accepted");
                } catch (InterfaceNotSupported expected) {
                    // as for suppliers
                }
                try {
                    channel.for_consumers().obtain_typed_push_supplier(id);
                    throw new IllegalStateException("it was accepted");
                } catch (NoSuchImplementation expected) {
                    // the standard's exception
                }
            }
        });
        Cases.check("typed events", () -> {
            Typed.AlarmsImpl alarms = new Typed.AlarmsImpl();
            EventsImpl events = new EventsImpl();
            Typed.Consumer[] consumers = {new Typed.Consumer(peers.serve(alarms)), new Typed.Consumer(peers.serve(events))};
            ProxyPushSupplier of_alarms = channel.for_consumers().obtain_typed_push_supplier(AlarmsHelper.id());
            ProxyPushSupplier of_events = channel.for_consumers().obtain_typed_push_supplier(EventsHelper.id());
            try {
                of_alarms.connect_push_consumer(PushConsumerHelper.narrow(peers.serve(consumers[1])));
                throw new IllegalStateException("it was accepted");
            } catch (TypeError expected) {
                // the consumer has the base alone
            }
            of_alarms.connect_push_consumer(TypedPushConsumerHelper.narrow(peers.serve(consumers[0])));
            of_events.connect_push_consumer(TypedPushConsumerHelper.narrow(peers.serve(consumers[1])));
            TypedProxyPushConsumer proxy = channel.for_suppliers().obtain_typed_push_consumer(AlarmsHelper.id());
            proxy.connect_push_supplier(null);
            Alarms supplier = AlarmsHelper.narrow(proxy.get_typed_consumer());
            supplier.raised("boiler", 7, Severity.major);
            supplier.stopped("pump");
            proxy.push(peers.of(77)); // untyped
            supplier.raised("boiler", 8, Severity.minor);
            alarms.received.expect("boiler 7 1");
            alarms.received.expect("stopped pump");
            alarms.received.expect("boiler 8 0");
            events.received.expect("stopped pump");
            for (String name : new String[] {"raised", "stopped", "77", "raised"}) untyped.received.expect(name);
            events.received.expectNothing();
            proxy.disconnect_push_consumer();
            try {
                supplier.stopped("pump");
                throw new IllegalStateException("it was accepted");
            } catch (org.omg.CORBA.OBJECT_NOT_EXIST expected) {
                // the proxy has ended
            }
            of_alarms.disconnect_push_supplier();
            of_events.disconnect_push_supplier();
        });
        Cases.check("typed events by pull", () -> {
            TypedProxyPullSupplier pulled = channel.for_consumers().obtain_typed_pull_supplier(PullAlarmsHelper.id());
            pulled.connect_pull_consumer(null);
            PullAlarms consumer = PullAlarmsHelper.narrow(pulled.get_typed_supplier());
            TypedProxyPushConsumer proxy = channel.for_suppliers().obtain_typed_push_consumer(AlarmsHelper.id());
            proxy.connect_push_supplier(null);
            Alarms supplier = AlarmsHelper.narrow(proxy.get_typed_consumer());
            supplier.stopped("pump");
            supplier.raised("boiler", 7, Severity.major);
            Typed.expectAlarm(consumer, "boiler 7 1");
            Typed.expectStopped(consumer, "pump");
            ProxyPullConsumer pulls = channel.for_suppliers().obtain_typed_pull_consumer(PullAlarmsHelper.id());
            Typed.Supplier fans = new Typed.Supplier(peers.serve(new Typed.PullAlarmsImpl()));
            pulls.connect_pull_supplier(TypedPullSupplierHelper.narrow(peers.serve(fans)));
            Typed.expectStopped(consumer, "fan 0");
            Typed.expectStopped(consumer, "fan 1");
            Typed.expectNothing(consumer);
            for (String name : new String[] {"stopped", "raised", "stopped", "stopped"}) untyped.received.expect(name);
            pulls.disconnect_pull_consumer();
            proxy.disconnect_push_consumer();
            pulled.disconnect_pull_supplier();
        });
    }
}
