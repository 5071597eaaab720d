import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.Binding;
import org.omg.CosNaming.BindingHolder;
import org.omg.CosNaming.BindingIteratorHolder;
import org.omg.CosNaming.BindingListHolder;
import org.omg.CosNaming.BindingType;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContext;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextExtPackage.InvalidAddress;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.CosNaming.NamingContextPackage.CannotProceed;
import org.omg.CosNaming.NamingContextPackage.InvalidName;
import org.omg.CosNaming.NamingContextPackage.NotEmpty;
import org.omg.CosNaming.NamingContextPackage.NotFound;
import org.omg.CosNaming.NamingContextPackage.NotFoundReason;

/**
 * Calls the naming service that is the initial reference `NameService`, by the standard Java mapping alone: the ORB and its
 * configuration are properties of the VM. Prints `ok NAME` or `FAIL NAME: reason` for each case.
 */
public final class NamesClient {
    private NamesClient() {}

    private static <E extends Throwable> E raises(Class<E> kind, Cases.Body body) {
        try {
            body.run();
        } catch (Throwable error) {
            if (kind.isInstance(error)) return kind.cast(error);
            throw new IllegalStateException("another exception: " + error);
        }
        throw new IllegalStateException("no exception");
    }

    private static NameComponent[] name(String... ids) {
        return Arrays.stream(ids).map(id -> new NameComponent(id, "")).toArray(NameComponent[]::new);
    }

    private static void notFound(int why, String[] rest, Cases.Body body) {
        NotFound error = raises(NotFound.class, body);
        Cases.equal(error.why.value(), why);
        Cases.equal(Arrays.asList(Arrays.stream(error.rest_of_name).map(step -> step.id).toArray()), Arrays.asList((Object[]) rest));
    }

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, null);
        NamingContextExt root = NamingContextExtHelper.narrow(orb.resolve_initial_references("NameService"));
        org.omg.CORBA.Object one = orb.string_to_object("corbaloc::127.0.0.1:9/one");
        org.omg.CORBA.Object two = orb.string_to_object("corbaloc::127.0.0.1:9/two");

        if (Boolean.getBoolean("bootstrap")) {
            Cases.check("list_initial_services", () -> Cases.equal(Arrays.asList(orb.list_initial_services()).contains("NameService"), true));
        }
        Cases.check("bind_new_context", () -> root.bind_new_context(name("java")));
        Cases.check("bind", () -> root.bind(name("java", "one"), one));
        Cases.check("bind/already_bound", () -> raises(AlreadyBound.class, () -> root.bind(name("java", "one"), two)));
        Cases.check("bind/invalid_name", () -> raises(InvalidName.class, () -> root.bind(name(), two)));
        Cases.check("bind/not_context", () -> notFound(NotFoundReason._not_context, new String[] {"one", "x"},
            () -> root.bind(name("java", "one", "x"), two)));
        Cases.check("resolve", () -> Cases.equal(root.resolve(name("java", "one"))._is_equivalent(one), true));
        Cases.check("resolve/missing_node", () -> notFound(NotFoundReason._missing_node, new String[] {"no", "x"},
            () -> root.resolve(name("java", "no", "x"))));
        Cases.check("rebind", () -> {
            root.rebind(name("java", "one"), two);
            Cases.equal(root.resolve(name("java", "one"))._is_equivalent(two), true);
        });
        Cases.check("rebind/not_object", () -> notFound(NotFoundReason._not_object, new String[] {"java"}, () -> root.rebind(name("java"), one)));
        NamingContext inner = root.new_context();
        Cases.check("bind_context", () -> root.bind_context(name("java", "inner"), inner));
        Cases.check("rebind_context", () -> root.rebind_context(name("java", "inner"), root.new_context()));
        Cases.check("rebind_context/not_context", () -> notFound(NotFoundReason._not_context, new String[] {"one"},
            () -> root.rebind_context(name("java", "one"), inner)));
        Cases.check("resolve_str", () -> Cases.equal(root.resolve_str("java/one")._is_equivalent(two), true));
        Cases.check("to_string", () -> Cases.equal(root.to_string(new NameComponent[] {new NameComponent("a/b", "c.d")}), "a\\/b.c\\.d"));
        Cases.check("to_name", () -> Cases.equal(root.to_name("a\\/b.c\\.d")[0].kind, "c.d"));
        Cases.check("to_name/invalid_name", () -> raises(InvalidName.class, () -> root.to_name("a//b")));
        Cases.check("to_url", () -> Cases.equal(root.to_url("iiop:1.2@host:2809", "a b"), "corbaname:iiop:1.2@host:2809#a%20b"));
        Cases.check("to_url/invalid_address", () -> raises(InvalidAddress.class, () -> root.to_url("", "a")));
        Cases.check("corbaname", () -> raises(BAD_PARAM.class, () -> orb.string_to_object("corbaname:rir:#java//one")));
        Cases.check("list", () -> {
            NamingContextExt java = NamingContextExtHelper.narrow(root.resolve(name("java")));
            for (int nth = 0; nth < 25; ++nth) java.bind(name("many" + nth), one);
            BindingListHolder some = new BindingListHolder();
            BindingIteratorHolder rest = new BindingIteratorHolder();
            java.list(3, some, rest);
            Set<String> found = new TreeSet<>();
            for (Binding binding : some.value) found.add(binding.binding_name[0].id);
            Cases.equal(found.size(), 3);
            BindingHolder next = new BindingHolder();
            Cases.equal(rest.value.next_one(next), true);
            found.add(next.value.binding_name[0].id);
            BindingListHolder more = new BindingListHolder();
            while (rest.value.next_n(10, more)) {
                for (Binding binding : more.value) {
                    found.add(binding.binding_name[0].id);
                    boolean isContext = binding.binding_type.value() == BindingType._ncontext;
                    Cases.equal(isContext, binding.binding_name[0].id.equals("inner"));
                }
            }
            Cases.equal(found.size(), 27);
            rest.value.destroy();
            raises(OBJECT_NOT_EXIST.class, () -> rest.value.next_one(next));
        });
        Cases.check("destroy/not_empty", () -> raises(NotEmpty.class, () -> NamingContextExtHelper.narrow(root.resolve(name("java"))).destroy()));
        Cases.check("unbind", () -> root.unbind(name("java", "one")));
        Cases.check("unbind/missing_node", () -> notFound(NotFoundReason._missing_node, new String[] {"one"}, () -> root.unbind(name("java", "one"))));
        Cases.check("destroy", () -> {
            inner.destroy();
            raises(OBJECT_NOT_EXIST.class, () -> inner.new_context());
        });
        Cases.check("unreachable", () -> {
            NamingContext gone = org.omg.CosNaming.NamingContextHelper.unchecked_narrow(one);
            root.bind_context(name("gone"), gone);
            CannotProceed error = raises(CannotProceed.class, () -> root.resolve(name("gone", "x")));
            Cases.equal(error.rest_of_name[0].id, "x");
            root.unbind(name("gone"));
        });
        System.out.flush();
        Cases.exit();
    }
}
