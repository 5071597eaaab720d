package peer;

import Interop.BinStruct;

/** The bulk patterns of tests/interop/README.md: the elements for a seed. */
final class Patterns {
    private Patterns() {}

    static byte[] octets(int seed, int length) {
        byte[] made = new byte[length];
        for (int i = 0; i < length; ++i) made[i] = (byte) (seed * 31 + i * 7 + (i >> 8));
        return made;
    }

    static double[] doubles(int seed, int length) {
        double[] made = new double[length];
        for (int i = 0; i < length; ++i) made[i] = seed + i * 0.25;
        return made;
    }

    static BinStruct[] structs(int seed, int length) {
        BinStruct[] made = new BinStruct[length];
        for (int i = 0; i < length; ++i) {
            made[i] = new BinStruct((short) i, (char) (i & 0xff), seed * 1000 + i, (byte) (i >> 3), i / 8.0);
        }
        return made;
    }

    static String[] strings(int seed, int length) {
        String[] made = new String[length];
        for (int i = 0; i < length; ++i) made[i] = "s" + i + "-" + seed;
        return made;
    }

    static String text(int seed, int length) {
        StringBuilder made = new StringBuilder(length);
        for (int i = 0; i < length; ++i) made.append(i % 97 == 96 ? '\u00e4' : (char) ('a' + (seed + i) % 26));
        return made.toString();
    }
}
