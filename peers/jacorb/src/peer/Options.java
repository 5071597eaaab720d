package peer;

import java.util.ArrayList;
import java.util.List;

/** `ROLE --serve | ROLE --call REFERENCE`, and how: `--giop 1.N`, `--codeset NAME`, `--only PREFIX`, `--port N`. */
final class Options {
    final String role;
    boolean serves;
    String reference = "";
    String only = "";
    /** The version of GIOP in references that are made here; clients speak the one of the reference that they have. */
    String minor = "2";
    String codeset = "ISO8859_1";
    boolean euro = true;
    /** Where a server listens; any port if empty. */
    String port = "";
    /** What a role understands itself. */
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
                case "--port": port = words.get(++i); break;
                case "--no-euro": euro = false; break;
                default: rest.add(words.get(i));
            }
        }
    }
}
