package peer;

import java.util.Arrays;

/** `Main ROLE [argument…]`: starts one of the peer programs; README.md lists them. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        int status;
        try {
            status = run(arguments);
        } catch (Exception error) {
            System.err.println("jacorb: " + error);
            error.printStackTrace();
            status = 1;
        }
        // The ORB's threads are not all daemons.
        System.out.flush();
        Runtime.getRuntime().halt(status);
    }

    private static int run(String[] arguments) throws Exception {
        Options options = new Options(Arrays.asList(arguments));
        switch (options.role) {
            case "types":
                return options.serves ? TypesServer.run(options) : TypesClient.run(options);
            case "valuetypes":
                return options.serves ? ValueTypes.serve(options) : ValueTypes.call(options);
            case "anything":
                return options.serves ? AnyThing.serve(options) : AnyThing.call(options);
            case "features":
                return options.serves ? FeaturesServer.run(options) : FeaturesClient.run(options);
            case "callbacks":
                return options.serves ? CallbackSides.serve(options) : CallbackSides.call(options);
            case "names":
                return Names.call(options);
            case "trading":
                return Trading.call(options);
            case "properties":
                return PropertySets.call(options);
            case "streams":
                return Streams.call(options);
            default:
                System.err.println("not a role: " + options.role);
                return 2;
        }
    }
}
