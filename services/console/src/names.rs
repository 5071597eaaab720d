//! The contexts of the naming service.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_naming::{
    Binding, BindingIterator, BindingType, NameComponent, NamingContext, naming_context,
};
use spandrel::services::name;
use spandrel::{ObjectRef, SystemException};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};

/// The bindings of a page.
const PAGE: usize = 1_000;
/// The most bindings that are read for one request.
const MAX_BINDINGS: usize = 100_000;
/// The most octets of their names.
const MAX_OCTETS: usize = 16 << 20;
/// The longest time in which they are read.
const LIST_TIMEOUT: Duration = Duration::from_secs(8);
/// The deepest context that is searched.
const MAX_DEPTH: usize = 16;
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

/// A page of the bindings of a context: `{"bindings":[{"path","name","kind"}],"next","truncated"}`, where `next` is the
/// beginning of the next page, if there is one.
pub(crate) fn list(permissions: &Permissions, root: &ObjectRef, path: &str, from: usize) -> Result<Value, Problem> {
    let name = parse(path)?;
    let context = resolve(root, &name)?;
    // The naming service of this process decides itself; another server does not know the caller.
    if !is_own(&context) {
        permissions.check("list", context.type_id(), Some(&name::to_string(&name)))?;
    }
    let mut budget = Budget::new();
    let bindings = bindings(&context, &mut budget)?;
    let mut entries: Vec<_> = bindings.iter().map(|binding| Entry::new(path, binding)).collect();
    entries.sort();
    let end = from.saturating_add(PAGE).min(entries.len());
    let next = (end < entries.len()).then_some(end);
    let page: Vec<_> = entries.get(from..end).unwrap_or_default().iter().map(|entry| entry.json(&entry.name)).collect();
    Ok(json!({ "bindings": page, "next": next, "truncated": budget.is_exceeded }))
}

/// The bindings in all contexts of this process whose paths contain a text, in any case of letters: as [`list`], with the
/// paths as names.
pub(crate) fn search(root: &ObjectRef, text: &str) -> Result<Value, Problem> {
    let filter_text = text.to_lowercase();
    let mut budget = Budget::new();
    let (mut waiting, mut seen) = (VecDeque::from([(String::new(), root.clone())]), HashSet::new());
    let mut matches = Vec::new();
    while let Some((path, context)) = waiting.pop_front() {
        let listed = match bindings(&context, &mut budget) {
            Ok(listed) => listed,
            Err(problem) if path.is_empty() => return Err(problem),
            // Opening it says why.
            Err(_) => continue,
        };
        for binding in &listed {
            let entry = Entry::new(&path, binding);
            if !entry.is_object
                && budget.has_room()
                && let Ok(name) = parse(&entry.path)
                && name.len() <= MAX_DEPTH
                && let Ok(below) = resolve(root, &name)
                && let Some(key) = below.orb().own_object_key(below.ior())
                && seen.insert(key)
            {
                waiting.push_back((entry.path.clone(), below));
            }
            if entry.path.to_lowercase().contains(&filter_text) {
                matches.push(entry);
            }
        }
    }
    matches.sort_by(|left, right| left.path.cmp(&right.path));
    let truncated = budget.is_exceeded || matches.len() > PAGE;
    let page: Vec<_> = matches.iter().take(PAGE).map(|entry| entry.json(&entry.path)).collect();
    Ok(json!({ "bindings": page, "next": Value::Null, "truncated": truncated }))
}

/// A binding with its whole path; contexts come before objects.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Entry {
    is_object: bool,
    name: String,
    path: String,
}

impl Entry {
    fn new(context: &str, binding: &Binding) -> Self {
        let name = name::to_string(&binding.binding_name);
        let path = if context.is_empty() { name.clone() } else { format!("{context}/{name}") };
        Self { is_object: binding.binding_type != BindingType::Ncontext, name, path }
    }

    fn json(&self, name: &str) -> Value {
        json!({ "name": name, "path": self.path, "kind": if self.is_object { "object" } else { "context" } })
    }
}

/// The names and octets that may still be read for one request.
struct Budget {
    bindings: usize,
    octets: usize,
    deadline: Deadline,
    is_exceeded: bool,
}

impl Budget {
    fn new() -> Self {
        Self { bindings: MAX_BINDINGS, octets: MAX_OCTETS, deadline: Deadline::after(LIST_TIMEOUT), is_exceeded: false }
    }

    fn has_room(&mut self) -> bool {
        self.is_exceeded |= self.bindings == 0 || self.octets == 0 || self.deadline.is_over();
        !self.is_exceeded
    }

    /// The bindings that fit.
    fn admit(&mut self, mut all: Vec<Binding>) -> Vec<Binding> {
        self.is_exceeded |= all.len() > self.bindings;
        all.truncate(self.bindings);
        self.bindings -= all.len();
        let components = all.iter().flat_map(|binding| &binding.binding_name);
        let octets: usize = components.map(|component| component.id.len() + component.kind.len()).sum();
        self.octets = self.octets.saturating_sub(octets);
        all
    }
}

/// Whether a context is one of this process.
fn is_own(context: &ObjectRef) -> bool {
    context.orb().own_object_key(context.ior()).is_some()
}

/// The bindings of a context, as far as there is room.
fn bindings(context: &ObjectRef, budget: &mut Budget) -> Result<Vec<Binding>, Problem> {
    let failed = |exception: SystemException| failed(&exception);
    let (first, iterator) = NamingContext::unchecked_narrow(context).list(CHUNK).map_err(failed)?;
    let mut all = budget.admit(first);
    let Some(iterator) = iterator else { return Ok(all) };
    // The object that a foreign context names as its iterator may be any.
    let iterator: BindingIterator = for_caller(iterator.as_object())?.unchecked_narrow();
    while budget.has_room() {
        let (goes_on, more) = iterator.next_n(CHUNK).map_err(failed)?;
        all.extend(budget.admit(more));
        if !goes_on {
            break;
        }
    }
    // An iterator without a client ends later by itself.
    _ = iterator.destroy();
    Ok(all)
}
