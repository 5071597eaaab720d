package peer;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;

/** Values as texts, which are equal exactly when the values are: floating-point numbers as bits, characters as numbers. */
final class Show {
    private Show() {}

    static String show(Object value) {
        StringBuilder out = new StringBuilder();
        try {
            show(value, out);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
        return out.toString();
    }

    /** The first difference of `seen`; null if there is none. */
    static String difference(String what, Object seen, Object expected) {
        String one = show(expected);
        String other = show(seen);
        return one.equals(other) ? null : what + ": expected " + Suite.cut(one) + ", saw " + Suite.cut(other);
    }

    private static void show(Object value, StringBuilder out) throws IllegalAccessException {
        if (value == null) out.append("null ");
        else if (value instanceof Float) out.append(Integer.toHexString(Float.floatToRawIntBits((Float) value))).append(' ');
        else if (value instanceof Double) out.append(Long.toHexString(Double.doubleToRawLongBits((Double) value))).append(' ');
        else if (value instanceof Character) out.append((int) (Character) value).append(' ');
        else if (value instanceof String) text((String) value, out);
        else if (value instanceof BigDecimal) out.append(((BigDecimal) value).stripTrailingZeros().toPlainString()).append(' ');
        else if (value instanceof Number || value instanceof Boolean) out.append(value).append(' ');
        else if (value.getClass().isArray()) array(value, out);
        else parts(value, out);
    }

    private static void text(String value, StringBuilder out) {
        out.append('"');
        for (char c : value.toCharArray()) {
            if (c >= ' ' && c <= '~') out.append(c);
            else out.append("\\x").append(Integer.toHexString(c));
        }
        out.append("\" ");
    }

    private static void array(Object value, StringBuilder out) throws IllegalAccessException {
        int length = Array.getLength(value);
        out.append('#').append(length).append(' ');
        for (int i = 0; i < length; ++i) show(Array.get(value, i), out);
    }

    /** All fields, including the private ones of unions; an enumeration has its number only. */
    private static void parts(Object value, StringBuilder out) throws IllegalAccessException {
        out.append(value.getClass().getSimpleName()).append('{');
        for (Field field : value.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers())) continue;
            field.setAccessible(true);
            show(field.get(value), out);
        }
        out.append("} ");
    }
}
