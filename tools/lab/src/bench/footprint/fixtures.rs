//! The interfaces whose stubs and skeletons are built: the operations of appendix C one by one, and the
//! services.

use spandrel::services::{AV_STREAMS_IDL, IDL_FILES, NOTIFICATION_IDL};
use spandrel_idl::model::{DefinitionKind, Type};
use spandrel_idl::{FrontEndOptions, MemoryFiles, Model, compile_with};

use crate::LabError;

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

/// A service whose IDL is measured.
struct Service {
    name: &'static str,
    /// The beginnings of its modules' names.
    modules: &'static [&'static str],
    /// The numbers of its definitions in table 7.9 of the paper.
    paper: Option<Definitions>,
}

const fn paper(structures: usize, sequences: usize, operations: usize) -> Option<Definitions> {
    Some(Definitions { structures, sequences, operations })
}

/// The services of the daemons.
const SERVICES: [Service; 8] = [
    Service { name: "CosNaming", modules: &["CosNaming"], paper: paper(2, 2, 13) },
    Service { name: "CosPropertyService", modules: &["CosPropertyService"], paper: paper(3, 5, 33) },
    Service { name: "CosTrading", modules: &["CosTrading"], paper: paper(11, 7, 63) },
    Service { name: AV_STREAMS, modules: &["AVStreams"], paper: paper(2, 3, 50) },
    Service { name: "CosEvent", modules: &["CosEvent", "CosTypedEvent"], paper: None },
    Service { name: NOTIFICATION, modules: &["CosNotif"], paper: None },
    Service { name: "ImplementationRepository", modules: &["ImplementationRepository"], paper: None },
    Service { name: "InterfaceRepository", modules: &["InterfaceRepository"], paper: None },
];

/// Its stubs and skeletons include those of the event service, from which its interfaces derive.
const NOTIFICATION: &str = "CosNotification";
/// Its stubs and skeletons include those of the property service, from which its interfaces derive.
const AV_STREAMS: &str = "AVStreams";

/// The IDL of the measured services: that of the daemons.
pub(super) fn services() -> Vec<Fixture> {
    let service = |service: Service| {
        let module = format!("module {}", service.modules[0]);
        let idl = IDL_FILES.into_iter().find(|idl| idl.contains(&module)).unwrap_or_default();
        Fixture { name: service.name, idl: idl.to_owned() }
    };
    let param_test = Fixture { name: "Param_Test", idl: PARAM_TEST.to_owned() };
    let mut services: Vec<_> = std::iter::once(param_test).chain(SERVICES.map(service)).collect();
    for (name, base, file, idl) in [
        (NOTIFICATION, IDL_FILES[0], "CosEvent.idl", NOTIFICATION_IDL),
        (AV_STREAMS, IDL_FILES[2], "CosPropertyService.idl", AV_STREAMS_IDL),
    ] {
        if let Some(fixture) = services.iter_mut().find(|fixture| fixture.name == name) {
            fixture.idl = [base, &idl.replace(&format!("#include \"{file}\""), "")].concat();
        }
    }
    services
}

/// The numbers of a service's definitions, as table 7.9 counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Structs with a name.
    pub structures: usize,
    /// Sequences with a name of their own.
    pub sequences: usize,
    /// Operations and attributes, each in the interface that defines it.
    pub operations: usize,
}

/// A row like those of table 7.9: a service, with the numbers of its definitions here and in the paper.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionsRow {
    /// The beginning of its modules' names, or another name for several modules.
    pub service: &'static str,
    /// The numbers of the IDL that the daemon serves.
    pub here: Definitions,
    /// The numbers in the paper; `None` for a service that its table does not have.
    pub paper: Option<Definitions>,
}

/// Counts the definitions of the services.
///
/// # Errors
/// IDL that does not compile.
pub fn definitions() -> Result<Vec<DefinitionsRow>, LabError> {
    let services = services();
    let rows = SERVICES.iter().map(|service| {
        let fixture = services.iter().find(|fixture| fixture.name == service.name);
        let fixture = fixture.ok_or_else(|| LabError::Settings(format!("{} has no IDL", service.name)))?;
        let here = count(&fixture.model()?, service.modules);
        Ok(DefinitionsRow { service: service.name, here, paper: service.paper })
    });
    rows.collect()
}

fn count(model: &Model, modules: &[&str]) -> Definitions {
    let mut counts = Definitions::default();
    let is_own = |name: &str| modules.iter().any(|module| name.starts_with(module));
    for definition in model.definitions().filter(|definition| is_own(&definition.scoped_name)) {
        match &definition.kind {
            DefinitionKind::Struct(_) => counts.structures += 1,
            DefinitionKind::Typedef(typedef) if matches!(typedef.ty, Type::Sequence { .. }) => counts.sequences += 1,
            DefinitionKind::Operation(_) | DefinitionKind::Attribute(_) => counts.operations += 1,
            _ => {}
        }
    }
    counts
}

impl Fixture {
    pub(super) fn model(&self) -> Result<Model, LabError> {
        let files = MemoryFiles::new().with("fixture.idl", self.idl.as_str());
        let model = compile_with(&FrontEndOptions::default(), &files, "fixture.idl".as_ref());
        model.map_err(|error| LabError::Settings(format!("{}: {error}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fixture_is_valid_idl_with_its_feature() {
        for fixture in operations().into_iter().chain(services()) {
            let model = fixture.model().unwrap_or_else(|error| panic!("{error}\n{}", fixture.idl));
            if fixture.name.starts_with("test_") {
                let interface = model.lookup("Param_Test").unwrap().id;
                let names: Vec<&str> = model.flattened(interface).iter().map(|&id| model[id].name.as_str()).collect();
                assert_eq!(names, [fixture.name]);
            }
        }
    }

    #[test]
    fn the_definitions_of_the_services_are_counted() {
        let rows = definitions().unwrap();
        let counts: Vec<_> = rows
            .iter()
            .map(|DefinitionsRow { service, here, .. }| (*service, here.structures, here.sequences, here.operations))
            .collect();
        let expected = [
            ("CosNaming", 2, 2, 17),
            ("CosPropertyService", 4, 6, 33),
            ("CosTrading", 10, 10, 71),
            ("AVStreams", 4, 9, 97),
            ("CosEvent", 0, 0, 27),
            ("CosNotification", 13, 15, 120),
            ("ImplementationRepository", 2, 1, 12),
            ("InterfaceRepository", 1, 1, 2),
        ];
        assert_eq!(counts, expected);
    }
}
