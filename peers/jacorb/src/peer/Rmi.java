package peer;

import java.io.Serializable;
import java.rmi.Remote;
import java.rmi.RemoteException;
import javax.rmi.CORBA.Stub;
import javax.rmi.CORBA.Tie;
import javax.rmi.CORBA.UtilDelegate;
import javax.rmi.CORBA.ValueHandler;
import org.omg.CORBA.ORB;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.StreamableValue;
import org.omg.SendingContext.RunTime;

/**
 * The part of `javax.rmi.CORBA.Util` that JacORB uses: the repository ID of a value's class, and classes by their names. The JDK's implementation
 * left with its ORB, and that of the jar with the interfaces needs a JDK older than 9.
 */
public final class Rmi implements UtilDelegate, ValueHandler {
    static void install() {
        System.setProperty("javax.rmi.CORBA.UtilClass", Rmi.class.getName());
    }

    private static UnsupportedOperationException never() {
        return new UnsupportedOperationException("no values of RMI are sent here");
    }

    @Override public String getRMIRepositoryID(Class kind) {
        if (!StreamableValue.class.isAssignableFrom(kind)) throw never();
        try {
            java.lang.reflect.Constructor<?> made = kind.getDeclaredConstructor();
            made.setAccessible(true);
            return ((StreamableValue) made.newInstance())._truncatable_ids()[0];
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override public Class loadClass(String name, String codebase, ClassLoader loader) throws ClassNotFoundException {
        return Class.forName(name);
    }

    @Override public ValueHandler createValueHandler() { return this; }
    @Override public boolean isCustomMarshaled(Class kind) { return false; }
    @Override public Serializable writeReplace(Serializable value) { return value; }
    @Override public String getCodebase(Class kind) { return null; }

    @Override public RemoteException mapSystemException(SystemException error) { throw never(); }
    @Override public void writeAny(OutputStream out, Object value) { throw never(); }
    @Override public Object readAny(InputStream in) { throw never(); }
    @Override public void writeRemoteObject(OutputStream out, Object value) { throw never(); }
    @Override public void writeAbstractObject(OutputStream out, Object value) { throw never(); }
    @Override public void registerTarget(Tie tie, Remote target) { throw never(); }
    @Override public void unexportObject(Remote target) { throw never(); }
    @Override public Tie getTie(Remote target) { throw never(); }
    @Override public boolean isLocal(Stub stub) { throw never(); }
    @Override public RemoteException wrapException(Throwable error) { throw never(); }
    @Override public Object copyObject(Object value, ORB orb) { throw never(); }
    @Override public Object[] copyObjects(Object[] values, ORB orb) { throw never(); }
    @Override public void writeValue(OutputStream out, Serializable value) { throw never(); }
    @Override public Serializable readValue(InputStream in, int at, Class kind, String id, RunTime sender) { throw never(); }
    @Override public RunTime getRunTimeCodeBase() { throw never(); }
}
