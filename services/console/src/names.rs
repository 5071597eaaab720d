//! The contexts of the naming service.

use axum::http::StatusCode;
use serde_json::{Value, json};
use spandrel::services::cos_naming::{
    Binding, BindingIterator, BindingType, NameComponent, NamingContext, naming_context,
};
use spandrel::services::name;
use spandrel::{ObjectRef, SystemException};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};

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
        Ok(Some(object)) => for_caller(&object),
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

/// The object for calls in the name of a caller. An object of this process is called in the process, however its
/// reference addresses it, so that the policy decides about the caller. Calls to another server do not come back to
/// this one with its own rights.
pub(crate) fn for_caller(object: &ObjectRef) -> Result<ObjectRef, Problem> {
    let own = object.orb().own_reference(object.ior()).map_err(|exception| failed(&exception))?;
    Ok(own.unwrap_or_else(|| object.excluding_own_endpoints()).with_timeout(Some(CALL_TIMEOUT)))
}

/// The bindings of a context: `{"bindings":[{"path","name","kind"}],"truncated"}`.
pub(crate) fn list(permissions: &Permissions, root: &ObjectRef, path: &str) -> Result<Value, Problem> {
    let name = parse(path)?;
    let context = resolve(root, &name)?;
    // The naming service of this process decides itself; another server does not know the caller.
    let is_own = root.orb().own_object_key(context.ior()).is_some();
    if !is_own {
        permissions.check("list", context.type_id(), Some(&name::to_string(&name)))?;
    }
    let context = NamingContext::unchecked_narrow(&context);
    let (bindings, truncated) = bindings(&context)?;
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
fn bindings(context: &NamingContext) -> Result<(Vec<Binding>, bool), Problem> {
    let failed = |exception: SystemException| failed(&exception);
    let (mut all, iterator) = context.list(CHUNK).map_err(failed)?;
    let mut has_more = false;
    if let Some(iterator) = iterator {
        has_more = true;
        // The object that a foreign context names as its iterator may be any.
        let iterator: BindingIterator = for_caller(iterator.as_object())?.unchecked_narrow();
        while has_more && all.len() < MAX_BINDINGS {
            let (goes_on, more) = iterator.next_n(CHUNK).map_err(failed)?;
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
