//! The shape of the facade's root.

/// The most names of the root; more belong to a module.
const LIMIT: usize = 27;

/// The names that a source file declares at its top level for programs: re-exports, modules and macros.
fn root_names(source: &str) -> Vec<String> {
    // Hidden items are for generated code.
    let source = source.replace("#[doc(hidden)]\npub mod ", "mod ");
    let mut names = Vec::new();
    for (at, _) in source.match_indices("\npub ") {
        let item = &source[at + "\npub ".len()..];
        if let Some(module) = item.strip_prefix("mod ") {
            names.extend(module.split([' ', ';', '{']).next().map(str::to_owned));
        } else if let Some(import) = item.strip_prefix("use ") {
            let import = import.split(';').next().unwrap();
            assert!(!import.contains('*'), "each name of the root is written out: {import}");
            match import.split_once('{') {
                Some((_, list)) => {
                    let list = list.trim_end().trim_end_matches('}').split(',').map(str::trim);
                    names.extend(list.filter(|name| !name.is_empty()).map(str::to_owned));
                }
                None => names.extend(import.rsplit([':', ' ']).next().map(str::to_owned)),
            }
        }
    }
    let macros = source.split("#[macro_export]\nmacro_rules! ").skip(1);
    names.extend(macros.filter_map(|rest| rest.split(' ').next()).map(str::to_owned));
    names
}

#[test]
fn the_root_has_few_names() {
    let names = root_names(include_str!("../../../spandrel/src/lib.rs"));
    for expected in ["Orb", "Poa", "SystemException", "types", "net", "ssliop", "include_idl"] {
        assert!(names.iter().any(|name| name == expected), "{expected} is missing in {names:?}");
    }
    assert!(!names.iter().any(|name| name == "generated"));
    assert!(names.len() <= LIMIT, "{} names: {names:?}", names.len());
}
