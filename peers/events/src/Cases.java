/** Test cases: each prints `ok NAME` or `FAIL NAME: reason`. */
final class Cases {
    private static int failed;

    interface Body {
        void run() throws Exception;
    }

    private Cases() {}

    static void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            ++failed;
            System.out.println("FAIL " + name + ": " + error);
        }
    }

    /** Fails unless the body raises such an exception. */
    static void raises(Class<? extends Throwable> kind, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable error) {
            if (kind.isInstance(error)) return;
            throw new IllegalStateException("expected " + kind.getSimpleName() + ", found " + error);
        }
        throw new IllegalStateException("expected " + kind.getSimpleName() + ", found nothing");
    }

    static void equal(Object found, Object expected) {
        if (!expected.equals(found)) throw new IllegalStateException("expected " + expected + ", found " + found);
    }

    /** Ends the VM, whatever threads the ORB has; the exit code is 1 if a case failed. */
    static void exit() {
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }
}
