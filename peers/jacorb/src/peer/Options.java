package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** `ROLE --serve | ROLE --call REFERENCE`, and their options: `--giop 1.N`, `--codeset NAME`, `--wide-codeset NAME`, `--texts POINTS`, `--beyond POINTS`, `--only PREFIX`, `--port N`, `--property NAME=VALUE`. */
final class Options {
    final String role;
    boolean serves;
    String reference = "";
    String only = "";
    /** The GIOP version in the server's references; clients use that of their reference. */
    String minor = "2";
    String codeset = "ISO8859_1";
    String wideCodeset = "UTF16";
    boolean euro = true;
    /** Only this text is sent, and one that must be rejected. */
    String texts = "";
    String beyond = "";
    /** Requests wait until the role enables them. */
    boolean holdsAtFirst;
    /** The output of a server begins with its port: its references may have another. */
    boolean tellsPort;
    /** Where a server listens; any port if empty. */
    String port = "";
    /** Of the ORB, in JacORB's own names. */
    final Properties properties = new Properties();
    /** Options of the role itself. */
    final List<String> rest = new ArrayList<>();

    Options(List<String> words) {
        role = words.isEmpty() ? "" : words.get(0);
        for (int i = 1; i < words.size(); ++i) {
            switch (words.get(i)) {
                case "--serve": serves = true; break;
                case "--call": reference = words.get(++i); break;
                case "--only": only = words.get(++i); break;
                case "--giop": minor = words.get(++i).substring(2); break;
                case "--codeset": codeset = words.get(++i); break;
                case "--wide-codeset": wideCodeset = words.get(++i); break;
                case "--texts": texts = text(words.get(++i)); break;
                case "--beyond": beyond = text(words.get(++i)); break;
                case "--property": {
                    String[] both = words.get(++i).split("=", 2);
                    properties.put(both[0], both[1]);
                    break;
                }
                case "--port": port = words.get(++i); break;
                case "--port-line": tellsPort = true; break;
                case "--no-euro": euro = false; break;
                default: rest.add(words.get(i));
            }
        }
    }

    /** The text of comma-separated hexadecimal code points. */
    private static String text(String points) {
        StringBuilder made = new StringBuilder();
        for (String point : points.split(",")) made.appendCodePoint(Integer.parseInt(point, 16));
        return made.toString();
    }
}
