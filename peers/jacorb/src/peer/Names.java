package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import org.omg.CORBA.BAD_PARAM;

/** Resolves the names of a naming service at a port, as tests/interop/src/names/client.rs does. */
final class Names {
    private static final String CONTEXT = "IDL:omg.org/CosNaming/NamingContext:1.0";
    private static final String NAMED = "IDL:Interop/Named:1.0";

    private Names() {}

    static int call(Options options) throws Exception {
        Broker broker = new Broker(options);
        Suite suite = new Suite(options.only);
        String context = "corbaname:iiop:1.2@127.0.0.1:" + options.reference + "/NameService";
        Find find = url -> broker.orb.string_to_object(url);
        suite.run("names/corbaname", () -> expect(find.by(context + "#a/b.kind")._is_a(NAMED), "it leads to something else"));
        suite.run("names/corbaname_escaped",
            () -> expect(find.by(context + "#x%5c/y%5c.z%5c%5c.k%25%23%20k")._is_a(NAMED), "it leads to something else"));
        suite.run("names/corbaname_context", () -> expect(find.by(context)._is_a(CONTEXT), "it is no naming context"));
        suite.run("names/corbaname_unknown", () -> raises(BAD_PARAM.class, () -> find.by(context + "#a/nobody")));
        suite.run("names/corbaname_malformed", () -> raises(BAD_PARAM.class, () -> find.by(context + "#a//b")));
        suite.run("names/plain_key", () -> expect(
            find.by("corbaloc:iiop:1.2@127.0.0.1:" + options.reference + "/NameService")._is_a(CONTEXT), "it is no naming context"));
        suite.run("names/is_a", () -> {
            org.omg.CORBA.Object object = find.by(context + "#a/b.kind");
            expect(object._is_a(NAMED) && !object._is_a("IDL:Interop/Other:1.0"), "it is not what it is");
        });
        suite.run("names/non_existent", () -> {
            equal("gone", find.by(context + "#a/b.kind")._non_existent(), false);
            equal("nobody is gone", find.by("corbaloc::127.0.0.1:" + options.reference + "/nobody")._non_existent(), true);
        });
        suite.run("names/is_equivalent", () -> {
            org.omg.CORBA.Object one = find.by(context + "#a/b.kind");
            org.omg.CORBA.Object other = find.by(context + "#x%5c/y%5c.z%5c%5c.k%25%23%20k");
            expect(one._is_equivalent(other) && one._hash(1000) == other._hash(1000), "it is two");
            expect(!one._is_equivalent(find.by(context)), "it is everything");
        });
        return suite.verdict();
    }

    private interface Find {
        org.omg.CORBA.Object by(String url) throws Exception;
    }
}
