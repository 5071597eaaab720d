//! Conversion of IDL identifiers to Rust ones: letter case and keywords.
//!
//! Collisions of names are handled by [`Scope`](super::scope::Scope).

/// Splits an identifier into words: at underscores, before a capital after a small letter or digit, and
/// before the last capital of a run that is followed by a small letter (`HTTPServer` is `HTTP` and `Server`).
fn words(identifier: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in identifier.split('_').filter(|part| !part.is_empty()) {
        let letters: Vec<char> = part.chars().collect();
        let mut start = 0;
        for at in 1..letters.len() {
            let (before, here) = (letters[at - 1], letters[at]);
            let small_follows = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            let starts_word = here.is_uppercase() && (!before.is_uppercase() || small_follows);
            if starts_word {
                words.push(letters[start..at].iter().collect());
                start = at;
            }
        }
        words.push(letters[start..].iter().collect());
    }
    words
}

/// Modules, operations, attributes, members and parameters: `getURLFor` becomes `get_url_for`.
pub(super) fn snake(identifier: &str) -> String {
    legal(words(identifier).join("_").to_lowercase())
}

/// Constants: `maxSize` becomes `MAX_SIZE`.
pub(super) fn screaming(identifier: &str) -> String {
    legal(words(identifier).join("_").to_uppercase())
}

/// Types and enumerators: `ttcp_sequence` becomes `TtcpSequence`.
///
/// An underscore stays between two digits, so that `v1_12` and `v11_2` remain different.
pub(super) fn pascal(identifier: &str) -> String {
    let mut name = String::new();
    for word in words(identifier) {
        let between_digits = name.ends_with(|last: char| last.is_ascii_digit())
            && word.starts_with(|first: char| first.is_ascii_digit());
        if between_digits {
            name.push('_');
        }
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(&letters.as_str().to_lowercase());
    }
    legal(name)
}

/// Restores an underscore for a name that is empty or begins with a digit without it.
fn legal(name: String) -> String {
    match name.chars().next() {
        None => "x".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
    }
}

/// Whether the word is a keyword of Rust that a raw identifier allows.
pub(super) fn is_keyword(name: &str) -> bool {
    KEYWORDS.binary_search(&name).is_ok()
}

/// Whether the word is a keyword of Rust that a raw identifier does not allow either.
pub(super) fn is_path_keyword(name: &str) -> bool {
    matches!(name, "self" | "Self" | "super" | "crate" | "_")
}

/// Keywords of edition 2024, reserved ones included (Rust reference, "Keywords"), sorted.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_case_changes() {
        for (identifier, snake_case, pascal_case) in [
            ("Bank", "bank", "Bank"),
            ("getFoo", "get_foo", "GetFoo"),
            ("get_foo", "get_foo", "GetFoo"),
            ("HTTPServer", "http_server", "HttpServer"),
            ("BinStruct", "bin_struct", "BinStruct"),
            ("ttcp_sequence", "ttcp_sequence", "TtcpSequence"),
            ("DevVarULongArray", "dev_var_u_long_array", "DevVarULongArray"),
            ("CosNaming", "cos_naming", "CosNaming"),
            ("URL2Name", "url2_name", "Url2Name"),
            ("ping_1way", "ping_1way", "Ping1way"),
            ("v1_12", "v1_12", "V1_12"),
            ("RED", "red", "Red"),
            ("x", "x", "X"),
            ("A_B", "a_b", "AB"),
            ("__odd__", "odd", "Odd"),
        ] {
            assert_eq!(snake(identifier), snake_case, "{identifier}");
            assert_eq!(pascal(identifier), pascal_case, "{identifier}");
        }
    }

    #[test]
    fn constants_are_upper_case() {
        assert_eq!(screaming("maxSize"), "MAX_SIZE");
        assert_eq!(screaming("MAX_SIZE"), "MAX_SIZE");
        assert_eq!(screaming("Limit"), "LIMIT");
    }

    #[test]
    fn stripped_names_are_still_identifiers() {
        assert_eq!(snake("_1"), "_1");
        assert_eq!(snake("__"), "x");
    }

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("type") && is_keyword("gen") && !is_keyword("union"));
    }
}
