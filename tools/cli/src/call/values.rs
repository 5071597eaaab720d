//! Arguments and results as text and JSON.

use spandrel::Orb;
use spandrel::dynamic::{DynAny, OperationDescription, Outcome, TextContext};
use spandrel::services::repository::{repository_of, type_by_id};
use spandrel::types::{Any, TcKind};

use super::interface::Found;

/// Reads arguments with the names that they may use: references, and types of the IDL file or repository.
pub(crate) fn with_context<E>(
    orb: &Orb,
    found: &Found,
    read: impl FnOnce(&TextContext<'_>) -> Result<Vec<Any>, E>,
) -> Result<Vec<Any>, E> {
    let resolve = |url: &str| {
        let object = orb.string_to_object(url);
        object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
    };
    let types = |name: &str| match &found.idl {
        Some(idl) => idl.type_code(name).ok(),
        None => repository_of(orb, &found.object).and_then(|from| type_by_id(&from, name)).ok().flatten(),
    };
    let value_types = found.interface.value_types();
    read(&TextContext::new().value_types(value_types).types(&types).references(&resolve))
}

/// The results for people, or as JSON.
pub(crate) fn shown(operation: &OperationDescription, outcome: &Outcome, is_json: bool) -> anyhow::Result<String> {
    if is_json {
        return Ok(format!("{}\n", outcome.to_json()?));
    }
    let mut text = String::new();
    if operation.result.kind() != TcKind::Void {
        text = format!("{}\n", DynAny::new(&outcome.result)?);
    }
    for out in &outcome.outs {
        if let Some(value) = &out.value {
            text.push_str(&format!("{}: {}\n", out.name, DynAny::new(value)?));
        }
    }
    Ok(text)
}
