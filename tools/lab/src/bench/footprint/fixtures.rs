//! The interfaces whose stubs and skeletons are built: the operations of appendix C one by one, and the
//! services.

/// An interface to build.
#[derive(Clone, Debug)]
pub(super) struct Fixture {
    /// Its name in tables.
    pub(super) name: &'static str,
    pub(super) idl: String,
}

/// The parts of `param_test.idl`, each by the operation that needs them.
const TYPES: [(&str, &[&str]); 7] = [
    ("test_short", &[]),
    ("test_unbounded_string", &[]),
    ("test_fixed_struct", &["struct Fixed_Struct"]),
    ("test_strseq", &["typedef sequence<string> StrSeq"]),
    ("test_var_struct", &["typedef sequence<string> StrSeq", "typedef string DUMMY", "struct Var_Struct"]),
    (
        "test_nested_struct",
        &["typedef sequence<string> StrSeq", "typedef string DUMMY", "struct Var_Struct", "struct Nested_Struct"],
    ),
    (
        "test_struct_sequence",
        &[
            "typedef sequence<string> StrSeq",
            "typedef string DUMMY",
            "struct Var_Struct",
            "typedef sequence<Var_Struct> StructSeq",
        ],
    ),
];

const PARAM_TEST: &str = include_str!("../../../idl/footprint/param_test.idl");

/// The interface of appendix C, an operation at a time, with the types that it needs.
pub(super) fn operations() -> Vec<Fixture> {
    let statements = statements(PARAM_TEST);
    let starting = |start: &str| {
        let found = statements.iter().find(|statement| statement.starts_with(start) || statement.contains(start));
        found.map_or("", String::as_str)
    };
    let fixture = |&(operation, types): &(&'static str, &[&str])| {
        let types: Vec<&str> = types.iter().map(|start| starting(start)).collect();
        let call = format!(" {operation} (");
        let body = format!("{}\n{}", types.join("\n"), starting(&call));
        Fixture { name: operation, idl: format!("interface Param_Test {{\n{body}\n}};\n") }
    };
    TYPES.iter().map(fixture).collect()
}

/// The declarations inside the interface.
fn statements(idl: &str) -> Vec<String> {
    let lines = idl.lines().map(|line| line.split("//").next().unwrap_or("").trim());
    let inside = lines.skip_while(|line| !line.starts_with("interface")).skip(1);
    let (mut statements, mut open, mut depth) = (Vec::new(), String::new(), 0usize);
    for line in inside.filter(|line| !line.is_empty()) {
        open.push_str(line);
        open.push('\n');
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        if depth == 0 && line.ends_with(';') {
            statements.push(std::mem::take(&mut open));
        }
    }
    statements
}

/// The IDL of the measured services.
pub(super) fn services() -> Vec<Fixture> {
    let all = [
        ("Param_Test", PARAM_TEST),
        ("naming", include_str!("../../../idl/footprint/naming.idl")),
        ("property", include_str!("../../../idl/footprint/property.idl")),
        ("trading", include_str!("../../../idl/footprint/trading.idl")),
    ];
    all.into_iter().map(|(name, idl)| Fixture { name, idl: idl.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use spandrel_idl::{FrontEndOptions, MemoryFiles, compile_with};

    use super::*;

    #[test]
    fn each_fixture_is_valid_idl_with_its_feature() {
        for fixture in operations().into_iter().chain(services()) {
            let files = MemoryFiles::new().with("it.idl", fixture.idl.as_str());
            let model = compile_with(&FrontEndOptions::default(), &files, "it.idl".as_ref());
            let model = model.unwrap_or_else(|error| panic!("{}: {error}\n{}", fixture.name, fixture.idl));
            if fixture.name.starts_with("test_") {
                let interface = model.lookup("Param_Test").unwrap().id;
                let names: Vec<&str> = model.flattened(interface).iter().map(|&id| model[id].name.as_str()).collect();
                assert_eq!(names, [fixture.name]);
            }
        }
    }
}
