import Plant.AlarmsPOA;
import Plant.PullAlarms;
import Plant.PullAlarmsPOA;
import Plant.Severity;
import Plant.SeverityHolder;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.StringHolder;
import org.omg.CosTypedEventComm.TypedPullSupplierPOA;
import org.omg.CosTypedEventComm.TypedPushConsumerPOA;

/** Suppliers and consumers of typed events. */
final class Typed {
    /** A typed consumer, whose events are calls of the object that it returns. */
    static final class Consumer extends TypedPushConsumerPOA {
        private final org.omg.CORBA.Object typed;

        Consumer(org.omg.CORBA.Object typed) {
            this.typed = typed;
        }

        @Override public org.omg.CORBA.Object get_typed_consumer() {
            return typed;
        }

        @Override public void push(Any data) {
            throw new org.omg.CORBA.NO_IMPLEMENT();
        }

        @Override public void disconnect_push_consumer() {}
    }

    static final class AlarmsImpl extends AlarmsPOA {
        final Peers.Received<String> received = new Peers.Received<>();

        @Override public void raised(String unit, int level, Severity severity) {
            received.add(unit + " " + level + " " + severity.value());
        }

        @Override public void stopped(String unit) {
            received.add("stopped " + unit);
        }
    }

    /** A typed supplier, whose object is pulled. */
    static final class Supplier extends TypedPullSupplierPOA {
        private final org.omg.CORBA.Object typed;

        Supplier(org.omg.CORBA.Object typed) {
            this.typed = typed;
        }

        @Override public org.omg.CORBA.Object get_typed_supplier() {
            return typed;
        }

        @Override public Any pull() {
            throw new org.omg.CORBA.NO_IMPLEMENT();
        }

        @Override public Any try_pull(BooleanHolder has_event) {
            throw new org.omg.CORBA.NO_IMPLEMENT();
        }

        @Override public void disconnect_pull_supplier() {}
    }

    /** The object of a supplier with two events. */
    static final class PullAlarmsImpl extends PullAlarmsPOA {
        private int next;

        @Override public void raised(StringHolder unit, IntHolder level, SeverityHolder severity) {
            throw new org.omg.CORBA.NO_IMPLEMENT();
        }

        @Override public boolean try_raised(StringHolder unit, IntHolder level, SeverityHolder severity) {
            unit.value = "";
            severity.value = Severity.minor;
            return false;
        }

        @Override public void stopped(StringHolder unit) {
            throw new org.omg.CORBA.NO_IMPLEMENT();
        }

        @Override public synchronized boolean try_stopped(StringHolder unit) {
            unit.value = "fan " + next;
            return next++ < 2;
        }
    }

    private Typed() {}

    static void expectAlarm(PullAlarms consumer, String expected) {
        StringHolder unit = new StringHolder();
        IntHolder level = new IntHolder();
        SeverityHolder severity = new SeverityHolder();
        consumer.raised(unit, level, severity);
        Cases.equal(unit.value + " " + level.value + " " + severity.value.value(), expected);
    }

    static void expectStopped(PullAlarms consumer, String expected) {
        StringHolder unit = new StringHolder();
        consumer.stopped(unit);
        Cases.equal(unit.value, expected);
    }

    static void expectNothing(PullAlarms consumer) {
        Cases.equal(consumer.try_stopped(new StringHolder()), false);
        Cases.equal(consumer.try_raised(new StringHolder(), new IntHolder(), new SeverityHolder()), false);
    }
}
