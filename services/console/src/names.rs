//! The contexts of the naming service.

use axum::http::StatusCode;
use serde_json::{Value, json};
use spandrel::services::cos_naming::{
    Binding, BindingIterator, BindingType, NameComponent, NamingContext, naming_context,
};
use spandrel::services::name;
use spandrel::{ObjectRef, SystemException};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, failed, invalid};

/// The most bindings of a context that are shown.
const MAX_BINDINGS: usize = 1_000;
/// The bindings of one answer of the naming service.
const CHUNK: u32 = 200;

/// The components of a name in its string form; none for the root.
pub(crate) fn parse(path: &str) -> Result<Vec<NameComponent>, Problem> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    name::parse(path).map_err(|error| invalid(format!("`{path}` is no name: {error}")))
}

/// The object that a name is bound to; an empty name is the root.
pub(crate) fn resolve(root: &ObjectRef, name: &[NameComponent]) -> Result<ObjectRef, Problem> {
    use naming_context::ResolveError as Error;
    let root = root.with_timeout(Some(CALL_TIMEOUT));
    if name.is_empty() {
        return Ok(root);
    }
    let path = name::Path(name);
    match NamingContext::unchecked_narrow(&root).resolve(name) {
        Ok(Some(object)) => Ok(object.with_timeout(Some(CALL_TIMEOUT))),
        Ok(None) | Err(Error::NotFound(_)) => {
            let detail = format!("`{path}` is not bound");
            Err(Problem::new(StatusCode::NOT_FOUND, "there is no such name").detail(detail))
        }
        Err(Error::InvalidName(_)) => Err(invalid(format!("`{path}` is no name of this naming service"))),
        Err(Error::CannotProceed(_)) => {
            let detail = format!("`{path}` goes through a context that does not answer");
            Err(Problem::new(StatusCode::BAD_GATEWAY, "the name cannot be resolved").detail(detail))
        }
        Err(Error::System(exception)) => Err(failed(&exception)),
    }
}

/// The bindings of a context: `{"bindings":[{"path","name","kind"}],"truncated"}`.
pub(crate) fn list(root: &ObjectRef, path: &str) -> Result<Value, Problem> {
    let context = NamingContext::unchecked_narrow(&resolve(root, &parse(path)?)?);
    let (bindings, truncated) = bindings(&context).map_err(|exception| failed(&exception))?;
    let mut entries: Vec<_> = bindings
        .iter()
        .map(|Binding { binding_name, binding_type }| {
            let name = name::to_string(binding_name);
            let whole = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            (*binding_type != BindingType::Ncontext, name, whole)
        })
        .collect();
    entries.sort();
    let entries: Vec<_> = entries
        .into_iter()
        .map(|(is_object, name, path)| {
            json!({ "name": name, "path": path, "kind": if is_object { "object" } else { "context" } })
        })
        .collect();
    Ok(json!({ "bindings": entries, "truncated": truncated }))
}

/// The bindings up to the limit, and whether there are more.
fn bindings(context: &NamingContext) -> Result<(Vec<Binding>, bool), SystemException> {
    let (mut all, iterator) = context.list(CHUNK)?;
    let mut has_more = false;
    if let Some(iterator) = iterator {
        has_more = true;
        let iterator: BindingIterator = iterator.as_object().with_timeout(Some(CALL_TIMEOUT)).unchecked_narrow();
        while has_more && all.len() < MAX_BINDINGS {
            let (goes_on, more) = iterator.next_n(CHUNK)?;
            has_more = goes_on;
            all.extend(more);
        }
        // An iterator without a client ends later by itself.
        _ = iterator.destroy();
    }
    has_more |= all.len() > MAX_BINDINGS;
    all.truncate(MAX_BINDINGS);
    Ok((all, has_more))
}
