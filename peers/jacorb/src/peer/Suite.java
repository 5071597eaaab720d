package peer;

import java.util.Objects;

/** Runs cases, prints `ok NAME` or `FAIL NAME: reason` for each, and counts. */
final class Suite {
    /** Seeds 0 to 2 are the plain values, the rest random. */
    static final int SEEDS = 24;

    interface Body {
        void run() throws Exception;
    }

    interface Seeded {
        void run(int seed) throws Exception;
    }

    interface Question {
        boolean holds() throws Exception;
    }

    /** The reason of a failed case. */
    static final class Failure extends Exception {
        private static final long serialVersionUID = 1L;

        Failure(String what) {
            super(what);
        }
    }

    private final String only;
    private int ran;
    private int failed;

    Suite(String only) {
        this.only = only;
    }

    void run(String name, Body body) {
        if (!name.startsWith(only)) return;
        ++ran;
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            ++failed;
            System.out.println("FAIL " + name + ": " + describe(error));
        }
    }

    /** A case that must hold for all seeds. */
    void seeded(String name, Seeded body) {
        run(name, () -> {
            for (int seed = 0; seed < SEEDS; ++seed) {
                try {
                    body.run(seed);
                } catch (Throwable error) {
                    throw new Failure("seed " + seed + ": " + describe(error));
                }
            }
        });
    }

    int verdict() {
        System.out.println(ran + " cases, " + failed + " failed");
        return failed == 0 && ran > 0 ? 0 : 1;
    }

    static String describe(Throwable error) {
        Throwable cause = error instanceof java.lang.reflect.InvocationTargetException ? error.getCause() : error;
        String what;
        if (cause instanceof Failure) what = cause.getMessage();
        else if (cause instanceof Interop.Mismatch) what = "the server says " + ((Interop.Mismatch) cause).what;
        else if (cause instanceof Anything.Mismatch) what = "the server says " + ((Anything.Mismatch) cause).what;
        else if (cause instanceof org.omg.CORBA.SystemException) {
            org.omg.CORBA.SystemException e = (org.omg.CORBA.SystemException) cause;
            what = e.getClass().getSimpleName() + " (minor 0x" + Integer.toHexString(e.minor) + ", completed "
                + e.completed.value() + "): " + e.getMessage();
        } else if (cause instanceof StackOverflowError) what = "StackOverflowError";
        else what = cause + " at " + (cause.getStackTrace().length > 0 ? cause.getStackTrace()[0] : "?");
        return what.replace('\n', ' ').replace('\r', ' ');
    }

    static void expect(boolean holds, String what) throws Failure {
        if (!holds) throw new Failure(what);
    }

    static void equal(String what, Object seen, Object expected) throws Failure {
        if (Objects.equals(seen, expected)) return;
        throw new Failure(what + ": expected " + cut(expected) + ", saw " + cut(seen));
    }

    /** Compares with the value of a seed and a role. */
    static void check(String what, Object seen, Shape shape, int seed, int role) throws Failure {
        String difference = Show.difference(what, seen, new Fill(seed, role).make(shape));
        if (difference != null) throw new Failure(difference);
    }

    /** Fails unless `body` raises such an exception, which it returns. */
    static <E extends Throwable> E raises(Class<E> kind, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable error) {
            if (kind.isInstance(error)) return kind.cast(error);
            throw new Failure("another exception: " + describe(error));
        }
        throw new Failure("no exception");
    }

    /** Polls until the condition holds: one-way calls may be executed after later calls on other connections. */
    static void eventually(String what, Question question) throws Exception {
        long giveUp = System.nanoTime() + Broker.TIME_LIMIT_MS * 1_000_000L;
        while (!question.holds()) {
            if (System.nanoTime() > giveUp) throw new Failure(what + ": it never happened");
            Thread.yield();
        }
    }

    static String cut(Object value) {
        String text = String.valueOf(value);
        return text.length() > 120 ? text.substring(0, 120) + "..." : text;
    }
}
