package peer;

import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SetOverrideType;

/** References with policies of their own. */
final class Policies {
    private static final int HUNDREDS_OF_NS_PER_MS = 10000;

    private Policies() {}

    /** The same object with this timeout of calls. */
    static org.omg.CORBA.Object roundtrip(ORB orb, org.omg.CORBA.Object target, int milliseconds) throws Exception {
        Any time = orb.create_any();
        time.insert_ulonglong((long) milliseconds * HUNDREDS_OF_NS_PER_MS);
        Policy policy = orb.create_policy(org.omg.Messaging.RELATIVE_RT_TIMEOUT_POLICY_TYPE.value, time);
        return target._set_policy_override(new Policy[] {policy}, SetOverrideType.ADD_OVERRIDE);
    }

    /** The same object with this sync scope of one-way calls (`Messaging::SyncScope`). */
    static org.omg.CORBA.Object scope(ORB orb, org.omg.CORBA.Object target, short scope) throws Exception {
        Any value = orb.create_any();
        org.omg.Messaging.SyncScopeHelper.insert(value, scope);
        Policy policy = orb.create_policy(org.omg.Messaging.SYNC_SCOPE_POLICY_TYPE.value, value);
        return target._set_policy_override(new Policy[] {policy}, SetOverrideType.ADD_OVERRIDE);
    }
}
