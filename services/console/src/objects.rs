//! Objects: their interfaces with documentation, whether they exist, and calls.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spandrel::dynamic::{
    Descriptions, DynAny, DynamicObject, InterfaceDescription, OperationDescription, TextContext, describe,
};
use spandrel::net::error::{escape, excerpt};
use spandrel::services::{IDL_FILES, name, repository};
use spandrel::types::{Any, IiopProfile, TypeCode};
use spandrel::{ObjectRef, Orb, SystemExceptionKind};
use spandrel_proxy::is_looked_up;
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};
use crate::names;

/// The longest time limit of a call by a form.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time for which an interface is kept.
const KEPT: Duration = Duration::from_secs(10);
/// The most interfaces that are kept.
const MAX_KEPT: usize = 64;
/// The most characters of a reason that a peer may have chosen.
const MAX_REASON: usize = 2_048;
/// The most octets of a result.
const MAX_RESULT: usize = 4 << 20;

/// The object of a request: by its name, or by its reference.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    path: Option<String>,
    reference: Option<String>,
}

/// A call by a form.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    #[serde(flatten)]
    target: Target,
    /// The operation or attribute.
    operation: String,
    /// Whether an attribute is set.
    #[serde(default)]
    set: bool,
    /// The arguments as JSON, in a text: numbers stay as they are written.
    #[serde(default)]
    arguments: String,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

/// Interfaces by repository id, with the time of their description.
type Kept = HashMap<String, (Instant, Arc<InterfaceDescription>)>;

/// The objects that an ORB reaches.
#[derive(Debug)]
pub(crate) struct Objects {
    orb: Orb,
    /// The root context of the naming service.
    root: ObjectRef,
    kept: Mutex<Kept>,
}

impl Objects {
    pub(crate) fn new(orb: &Orb, root: &ObjectRef) -> Self {
        Self { orb: orb.clone(), root: root.clone(), kept: Mutex::default() }
    }

    /// The object, and its name in the one form that rules of the policy see, if it was found by a name.
    fn find(&self, target: &Target) -> Result<(ObjectRef, Option<String>), Problem> {
        match target {
            Target { path: Some(path), reference: None } => {
                let name = names::parse(path)?;
                Ok((names::resolve(&self.root, &name)?, Some(name::to_string(&name))))
            }
            Target { path: None, reference: Some(text) } => {
                if is_looked_up(text) {
                    let detail =
                        "expected `IOR:…` or `corbaloc:…`; the path of an object is its name in this naming service";
                    return Err(invalid(detail));
                }
                let object = self.orb.string_to_object(text).map_err(|exception| failed(&exception))?;
                Ok((names::for_caller(&object)?, None))
            }
            _ => Err(invalid("expected either a `path` or a `reference`")),
        }
    }

    /// An object: its reference, its state, and its interface or the reason why that is not known.
    pub(crate) fn describe(&self, permissions: &Permissions, target: &Target) -> Result<Value, Problem> {
        let (object, path) = self.find(target)?;
        permissions.check("_interface", object.type_id(), path.as_deref())?;
        let profiles = object.ior().profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
        let addresses: Vec<_> =
            profiles.map(|profile| format!("{}:{}", excerpt(&profile.host), profile.port)).collect();
        let described = self.interface(&object);
        let (interface, problem) = match &described {
            Ok(interface) => (described_interface(interface)?, Value::Null),
            Err(problem) => (Value::Null, json!(escape(problem).at_most(MAX_REASON).to_string())),
        };
        Ok(json!({
            "reference": object.to_string(),
            "type": excerpt(object.type_id()).to_string(),
            "addresses": addresses,
            "state": state(&object),
            "interface": interface,
            "problem": problem,
        }))
    }

    /// Whether an object exists.
    pub(crate) fn state(&self, permissions: &Permissions, target: &Target) -> Result<Value, Problem> {
        let (object, path) = self.find(target)?;
        permissions.check("_non_existent", object.type_id(), path.as_deref())?;
        Ok(state(&object))
    }

    /// The interface of an object from a repository; the error is a reason for people.
    fn interface(&self, object: &ObjectRef) -> Result<Arc<InterfaceDescription>, String> {
        let id = object.type_id();
        {
            let cache = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, interface)) = cache.get(id).filter(|_| !id.is_empty())
                && since.elapsed() < KEPT
            {
                return Ok(Arc::clone(interface));
            }
        }
        let mut interface = match repository::interface_of(&self.orb, object) {
            Ok(interface) => interface,
            Err(exception) if exception.kind() == SystemExceptionKind::IntfRepos => {
                // A reference may lack the type, such as one of a `corbaloc:` URL.
                let type_id = if id.is_empty() { object.repository_id().unwrap_or_default() } else { id.to_owned() };
                if let Some(own) = own_interface(&type_id) {
                    return Ok(Arc::new(own));
                }
                let id = excerpt(&type_id);
                return Err(format!(
                    "no interface repository describes `{id}`: `spandrel idl --to-repository FILE.idl` adds a file ({exception})"
                ));
            }
            Err(exception) => return Err(exception.to_string()),
        };
        let documentation =
            repository::repository_of(&self.orb, object).and_then(|from| repository::documentation(&from, &interface));
        // A repository of another ORB has none.
        if let Ok(documentation) = documentation {
            interface = interface.with_documentation(&documentation);
        }
        let interface = Arc::new(interface);
        // The object may be of another type than its reference claims.
        if interface.id() == id {
            let mut cache = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if cache.len() >= MAX_KEPT {
                cache.clear();
            }
            cache.insert(id.to_owned(), (Instant::now(), Arc::clone(&interface)));
        }
        Ok(interface)
    }

    /// Whether the server says that an object is of this type. The type in a reference is the word of whoever wrote it.
    fn server_confirms(&self, object: &ObjectRef, id: &str) -> Result<bool, Problem> {
        let mut ior = object.ior().clone();
        ior.type_id = String::new();
        let untyped = self.orb.reference(ior).with_timeout(Some(CALL_TIMEOUT));
        untyped.is_a(id).map_err(|exception| failed(&exception))
    }

    /// Calls an operation: `{"outcome":{"result","out"},"seconds"}`.
    pub(crate) fn call(&self, permissions: &Permissions, call: &Call) -> Result<Value, Problem> {
        let (object, path) = self.find(&call.target)?;
        let interface = self.interface(&object);
        let interface = interface.map_err(|reason| {
            Problem::new(StatusCode::BAD_GATEWAY, "the interface of the object is not known").detail(reason)
        })?;
        let operation = interface.callable(&call.operation, call.set).map_err(|error| invalid(error.to_string()))?;
        permissions.check(&operation.name, interface.id(), path.as_deref())?;
        // Rules name interfaces.
        if permissions.has_policy() && !self.server_confirms(&object, interface.id())? {
            let detail =
                format!("its server says that it is not of type `{}`, as the reference has it", interface.id());
            return Err(Problem::new(StatusCode::FORBIDDEN, "the object is of another type").detail(detail));
        }
        let arguments = self.arguments(&object, &interface, operation, &call.arguments)?;
        let timeout = match call.timeout {
            None => CALL_TIMEOUT,
            Some(seconds) if seconds > 0.0 && seconds <= MAX_TIMEOUT.as_secs_f64() => Duration::from_secs_f64(seconds),
            Some(_) => return Err(invalid(format!("the time limit is one of 0 to {} s", MAX_TIMEOUT.as_secs()))),
        };
        let object = DynamicObject::new(object.with_timeout(Some(timeout)), Arc::clone(&interface));
        let begin = Instant::now();
        let outcome = object.call(&operation.name, &arguments).map_err(|error| Problem::from(&error))?;
        let seconds = begin.elapsed().as_secs_f64();
        let too_large = || Problem::new(StatusCode::BAD_GATEWAY, "the result is larger than the console shows");
        let text = outcome.to_json().map_err(|error| too_large().caused_by(&error))?;
        if text.len() > MAX_RESULT {
            return Err(too_large().detail(format!("its JSON has {} octets, and {MAX_RESULT} are shown", text.len())));
        }
        // As a text, so that the digits of numbers stay.
        Ok(json!({ "outcome": text, "seconds": seconds }))
    }

    fn arguments(
        &self,
        object: &ObjectRef,
        interface: &InterfaceDescription,
        operation: &OperationDescription,
        text: &str,
    ) -> Result<Vec<Any>, Problem> {
        let named = interface.named_types();
        let types = |name: &str| {
            let is_named =
                |type_code: &&TypeCode| type_code.id() == Ok(name) || type_code.type_spec().to_string() == name;
            named.iter().find(is_named).cloned().or_else(|| {
                let repository = repository::repository_of(&self.orb, object);
                repository.and_then(|repository| repository::type_by_id(&repository, name)).ok().flatten()
            })
        };
        let references = |url: &str| {
            if is_looked_up(url) {
                return Err("expected a reference `IOR:…` or `corbaloc:…`".to_owned());
            }
            let object = self.orb.string_to_object(url);
            object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
        };
        let context = TextContext::new().value_types(interface.value_types()).types(&types).references(&references);
        operation.read_arguments(text, &context).map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "the arguments are not those of the operation").caused_by(&error)
        })
    }
}

/// The interface with this repository id, if it is one of the services themselves.
fn own_interface(id: &str) -> Option<InterfaceDescription> {
    static OWN: LazyLock<Vec<Descriptions>> =
        LazyLock::new(|| IDL_FILES.iter().filter_map(|text| describe(text).ok()).collect());
    OWN.iter().find_map(|all| all.interface(id).ok())
}

/// The state of an object, by `_non_existent`.
fn state(object: &ObjectRef) -> Value {
    let (state, detail) = match object.non_existent() {
        Ok(false) => ("exists", String::new()),
        Ok(true) => ("gone", "its server says that it does not exist".to_owned()),
        Err(exception) => match exception.kind() {
            SystemExceptionKind::ObjectNotExist => ("gone", exception.to_string()),
            SystemExceptionKind::NoPermission => ("denied", exception.to_string()),
            _ => ("unreachable", exception.to_string()),
        },
    };
    json!({ "state": state, "detail": escape(&detail).at_most(MAX_REASON).to_string() })
}

/// A type in the JSON form of `CORBA::TypeCode`.
fn described_type(type_code: &TypeCode) -> Result<Value, Problem> {
    let unknown = |error: &dyn std::error::Error| Problem::internal(format!("a type has no JSON form: {error}"));
    let any = Any::new(type_code).map_err(|error| unknown(&error))?;
    let text = DynAny::new(&any).and_then(|type_code| type_code.to_json()).map_err(|error| unknown(&error))?;
    serde_json::from_str(&text).map_err(|error| unknown(&error))
}

fn described_interface(interface: &InterfaceDescription) -> Result<Value, Problem> {
    let is_operation = |operation: &&OperationDescription| !operation.name.starts_with('_');
    let operations = interface.operations().iter().filter(is_operation).map(|operation| {
        let parameters = operation.parameters.iter().map(|parameter| {
            Ok(json!({
                "name": parameter.name,
                "mode": parameter.mode.keyword(),
                "type": described_type(&parameter.type_code)?,
                "spec": parameter.type_code.type_spec().to_string(),
            }))
        });
        Ok(json!({
            "name": operation.name,
            "declaration": operation.to_string(),
            "documentation": interface.documentation_of(&operation.name).unwrap_or_default(),
            "oneway": operation.is_oneway,
            "result": operation.result.type_spec().to_string(),
            "parameters": parameters.collect::<Result<Vec<_>, Problem>>()?,
            "exceptions": operation.exceptions.iter().map(described_exception).collect::<Vec<_>>(),
        }))
    });
    let attributes = interface.attributes().iter().map(|attribute| {
        Ok(json!({
            "name": attribute.name,
            "declaration": attribute.to_string(),
            "documentation": interface.documentation_of(&attribute.name).unwrap_or_default(),
            "readonly": attribute.is_readonly,
            "type": described_type(&attribute.type_code)?,
            "spec": attribute.type_code.type_spec().to_string(),
        }))
    });
    let (mut types, mut comments) = (Vec::new(), Map::new());
    for type_code in interface.named_types() {
        let Ok(id) = type_code.id() else { continue };
        let documentation = interface.documentation();
        let mut parts = Map::new();
        for part in parts_of(&type_code) {
            if let Some(text) = documentation.of_part(id, &part) {
                parts.insert(part, json!(text));
            }
        }
        comments.insert(id.to_owned(), json!({ "text": documentation.of(id), "parts": parts }));
        types.push(json!({ "spec": type_code.type_spec().to_string(), "id": id, "type": described_type(&type_code)? }));
    }
    let undescribed = interface.undescribed().iter().map(|it| json!({ "name": it.name, "reason": it.reason }));
    Ok(json!({
        "id": interface.id(),
        "name": interface.name(),
        "bases": interface.bases(),
        "documentation": interface.documentation().of(interface.id()).unwrap_or_default(),
        "operations": operations.collect::<Result<Vec<_>, Problem>>()?,
        "attributes": attributes.collect::<Result<Vec<_>, Problem>>()?,
        "undescribed": undescribed.collect::<Vec<_>>(),
        "types": types,
        "comments": comments,
    }))
}

fn described_exception(type_code: &TypeCode) -> Value {
    json!({ "spec": type_code.type_spec().to_string(), "id": type_code.id().unwrap_or_default() })
}

/// The names of a type's members or enumerators.
fn parts_of(type_code: &TypeCode) -> Vec<String> {
    let count = type_code.member_count().unwrap_or_default();
    (0..count).filter_map(|index| type_code.member_name(index).ok().map(str::to_owned)).collect()
}
