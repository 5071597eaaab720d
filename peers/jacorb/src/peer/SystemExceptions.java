package peer;

import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.SystemException;

/** The standard system exceptions that omniORB and JacORB have. */
final class SystemExceptions {
    static final String[] NAMES = {
        "UNKNOWN", "BAD_PARAM", "NO_MEMORY", "IMP_LIMIT", "COMM_FAILURE", "INV_OBJREF", "OBJECT_NOT_EXIST", "NO_PERMISSION",
        "INTERNAL", "MARSHAL", "INITIALIZE", "NO_IMPLEMENT", "BAD_TYPECODE", "BAD_OPERATION", "NO_RESOURCES", "NO_RESPONSE",
        "PERSIST_STORE", "BAD_INV_ORDER", "TRANSIENT", "FREE_MEM", "INV_IDENT", "INV_FLAG", "INTF_REPOS", "BAD_CONTEXT",
        "OBJ_ADAPTER", "DATA_CONVERSION", "INV_POLICY", "REBIND", "TIMEOUT", "TRANSACTION_UNAVAILABLE", "TRANSACTION_MODE",
        "TRANSACTION_REQUIRED", "TRANSACTION_ROLLEDBACK", "INVALID_TRANSACTION", "CODESET_INCOMPATIBLE", "BAD_QOS",
    };

    private SystemExceptions() {}

    static SystemException make(String name, int minor, int completed) {
        try {
            Object made = Class.forName("org.omg.CORBA." + name).getConstructor(int.class, CompletionStatus.class)
                .newInstance(minor, CompletionStatus.from_int(completed));
            return (SystemException) made;
        } catch (ReflectiveOperationException error) {
            return new org.omg.CORBA.BAD_PARAM(0, CompletionStatus.COMPLETED_NO);
        }
    }
}
