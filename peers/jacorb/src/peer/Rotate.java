package peer;

import Interop.Mismatch;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/** The `rotate_*` operations of all five interfaces, by reflection: servants, and the calls of a client. */
final class Rotate implements InvocationHandler {
    private static final String PREFIX = "rotate_";

    private Rotate() {}

    /** The delegate of a tie. */
    static <T> T servant(Class<T> operations) {
        Object made = Proxy.newProxyInstance(operations.getClassLoader(), new Class<?>[] {operations}, new Rotate());
        return operations.cast(made);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName().substring(PREFIX.length());
        int seed = (Integer) arguments[0];
        Shape shape = Shape.ofHolder(name, arguments[2].getClass());
        Field b = arguments[2].getClass().getField("value");
        refuse(Show.difference("a", arguments[1], new Fill(seed, 1).make(shape)));
        refuse(Show.difference("b", b.get(arguments[2]), new Fill(seed, 2).make(shape)));
        b.set(arguments[2], new Fill(seed, 4).make(shape));
        arguments[3].getClass().getField("value").set(arguments[3], new Fill(seed, 5).make(shape));
        return new Fill(seed, 3).make(shape);
    }

    static void refuse(String difference) throws Mismatch {
        if (difference != null) throw new Mismatch(difference);
    }

    /** One case per operation of the interface: its value is sent as `in` and `inout`, and returned in three places. */
    static void run(Suite suite, String group, Class<?> operations, Object target) {
        List<Method> methods = Arrays.stream(operations.getMethods()).filter(m -> m.getName().startsWith(PREFIX))
            .sorted(Comparator.comparing(Method::getName)).collect(Collectors.toList());
        for (Method method : methods) {
            String name = method.getName().substring(PREFIX.length());
            suite.seeded(group + "/" + name, seed -> call(method, name, target, seed));
        }
    }

    private static void call(Method method, String name, Object target, int seed) throws Exception {
        Class<?> holder = method.getParameterTypes()[2];
        Shape shape = Shape.ofHolder(name, holder);
        Field value = holder.getField("value");
        Object b = holder.getConstructor().newInstance();
        Object c = holder.getConstructor().newInstance();
        value.set(b, new Fill(seed, 2).make(shape));
        Object result = method.invoke(target, seed, new Fill(seed, 1).make(shape), b, c);
        Suite.check("result", result, shape, seed, 3);
        Suite.check("b", value.get(b), shape, seed, 4);
        Suite.check("c", value.get(c), shape, seed, 5);
    }
}
