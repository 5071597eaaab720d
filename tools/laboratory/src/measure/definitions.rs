//! Counts of the definitions in the IDL of services (paper 001, table 7.9).

use std::path::Path;

use spandrel_idl::model::{DefinitionKind, Type};
use spandrel_idl::{FrontEndOptions, MemoryFiles, Model};
use spandrel_lab::LabError;

use crate::series::{Measured, Series, Unit};

/// The services whose IDL this source tree has.
const SERVICES: [(&str, &str); 6] = [
    ("CosTrading", include_str!("../../../../orb/cos/idl/CosTrading.idl")),
    ("CosPropertyService", include_str!("../../../../orb/cos/idl/CosPropertyService.idl")),
    ("CosNaming", include_str!("../../../../orb/cos/idl/CosNaming.idl")),
    ("CosEvent", include_str!("../../../../orb/cos/idl/CosEvent.idl")),
    ("InterfaceRepository", include_str!("../../../../orb/cos/idl/InterfaceRepository.idl")),
    ("ImplementationRepository", include_str!("../../../../orb/cos/idl/ImplementationRepository.idl")),
];

/// The definitions of one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    structs: usize,
    sequences: usize,
    /// Operations, and attributes once each.
    operations: usize,
}

pub(super) fn measure() -> Result<Measured, LabError> {
    let mut measured = Measured::default();
    for (service, text) in SERVICES {
        let counts = count(&compile(service, text)?);
        for (name, count) in
            [("structs", counts.structs), ("sequences", counts.sequences), ("operations", counts.operations)]
        {
            measured.series.push(Series::new(format!("{name} {service}"), Unit::Count, vec![count as f64]));
        }
    }
    measured.absent.push(("structs AVStreams".to_owned(), "this source tree has no such service".to_owned()));
    Ok(measured)
}

fn compile(service: &str, text: &str) -> Result<Model, LabError> {
    let file = format!("{service}.idl");
    let files = MemoryFiles::new().with(&file, text);
    let model = spandrel_idl::compile_with(&FrontEndOptions::default(), &files, Path::new(&file));
    model.map_err(|errors| LabError::Settings(format!("cannot compile {file}: {errors}")))
}

/// What the main file defines; types without a name are not counted.
fn count(model: &Model) -> Counts {
    let mut counts = Counts::default();
    for definition in model.definitions().filter(|definition| definition.in_main_file) {
        match &definition.kind {
            DefinitionKind::Struct(_) => counts.structs += 1,
            DefinitionKind::Typedef(typedef) if matches!(typedef.ty, Type::Sequence { .. }) => counts.sequences += 1,
            DefinitionKind::Operation(_) | DefinitionKind::Attribute(_) => counts.operations += 1,
            _ => {}
        }
    }
    counts
}
