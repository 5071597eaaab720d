//! Objects as values of a script, called dynamically.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rhai::{Array, Dynamic};
use spandrel::dynamic::{
    Descriptions, DynAny, DynamicObject, InterfaceDescription, OperationDescription, RequestError, TextContext,
};
use spandrel::services::name;
use spandrel::services::repository::interface_of;
use spandrel::types::{Any, TypeCode};
use spandrel::{ObjectRef, Orb};

use super::time_limit::TimeLimit;
use super::value;
use crate::names::Names;

/// Finds objects and their interfaces.
pub(super) struct Finder {
    orb: Orb,
    names: Names,
    /// IDL of files, then that of the Orchestrator.
    idl: Arc<Vec<Descriptions>>,
    limit: TimeLimit,
}

impl Finder {
    pub(super) fn new(orb: Orb, names: Names, idl: Vec<Descriptions>, limit: TimeLimit) -> Self {
        Self { orb, names, idl: Arc::new(idl), limit }
    }

    /// The object with a name or a URL.
    pub(super) fn handle(&self, text: &str) -> anyhow::Result<Handle> {
        let is_url = ["IOR:", "corbaloc:", "corbaname:"]
            .iter()
            .any(|scheme| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)));
        let object = match is_url {
            true => self.orb.string_to_object(text).with_context(|| format!("`{text}` is no URL of an object"))?,
            false => {
                let name =
                    name::parse(text.trim_start_matches('/')).with_context(|| format!("invalid name `{text}`"))?;
                self.names.resolve(&name)?
            }
        };
        let interface = self.interface(&object).with_context(|| format!("the interface of `{text}` is unknown"))?;
        let (orb, idl) = (self.orb.clone(), Arc::clone(&self.idl));
        Ok(Handle { orb, idl, object: DynamicObject::new(object, interface), limit: self.limit })
    }

    /// The interface of the reference's type: from IDL, or else from an interface repository. A reference without a
    /// type, such as that of a `corbaloc:` URL, has the most derived one of the interfaces that the object supports.
    fn interface(&self, object: &ObjectRef) -> anyhow::Result<InterfaceDescription> {
        let id = object.type_id();
        let known = match id {
            "" => self.supported(object)?,
            id => self.idl.iter().find_map(|idl| idl.interface(id).ok()),
        };
        known.map_or_else(
            || {
                let described = interface_of(&self.orb, object);
                described.with_context(|| {
                    let id = if id.is_empty() { "an interface of the object".to_owned() } else { format!("`{id}`") };
                    format!("no -I file declares {id}, and no interface repository has it (--orb '-ORBInitRef …')")
                })
            },
            Ok,
        )
    }

    /// The most derived interface of the IDL that an object supports, if there is one.
    fn supported(&self, object: &ObjectRef) -> anyhow::Result<Option<InterfaceDescription>> {
        let mut description: Option<InterfaceDescription> = None;
        // Local interfaces have no objects elsewhere, and no description.
        let interfaces = self.idl.iter().flat_map(|idl| idl.interfaces().filter_map(|name| idl.interface(name).ok()));
        for interface in interfaces {
            let is_further = description.as_ref().is_none_or(|description| interface.is_a(description.id()));
            if is_further && object.is_a(interface.id()).context("the object cannot be asked for its type")? {
                description = Some(interface);
            }
        }
        Ok(description)
    }
}

/// An object of a script.
#[derive(Clone)]
pub(super) struct Handle {
    orb: Orb,
    idl: Arc<Vec<Descriptions>>,
    object: DynamicObject,
    limit: TimeLimit,
}

impl Handle {
    /// The object, with the time that the script has left for a call.
    fn bound(&self) -> anyhow::Result<Cow<'_, DynamicObject>> {
        Ok(match self.limit.left_for_call()? {
            None => Cow::Borrowed(&self.object),
            Some(left) => {
                let object = self.object.object().with_timeout(Some(left));
                Cow::Owned(DynamicObject::new(object, self.object.interface().clone()))
            }
        })
    }

    /// Calls an operation with arguments of a script.
    pub(super) fn call(&self, operation: &str, arguments: &Array) -> anyhow::Result<Dynamic> {
        let description = self.object.interface().callable(operation, false)?;
        let arguments = self.arguments(description, arguments)?;
        let outcome = self.bound()?.call(&description.name, &arguments).map_err(explained)?;
        let json: serde_json::Value = serde_json::from_str(&outcome.to_json()?)?;
        value::of_outcome(&json)
    }

    /// The value of an attribute.
    pub(super) fn get(&self, attribute: &str) -> anyhow::Result<Dynamic> {
        let got = self.bound()?.get(attribute).map_err(explained)?;
        Ok(value::of_json(&serde_json::from_str(&DynAny::new(&got)?.to_json()?)?))
    }

    /// Assigns a value of a script to an attribute.
    pub(super) fn set(&self, attribute: &str, to: &Dynamic) -> anyhow::Result<()> {
        let description = self.object.interface().callable(attribute, true)?;
        let arguments = self.arguments(description, &vec![to.clone()])?;
        let argument = arguments.first().ok_or_else(|| anyhow!("`{attribute}` is no attribute"))?;
        self.bound()?.set(attribute, argument).map_err(explained)
    }

    /// The values of `in` and `inout` parameters.
    fn arguments(&self, operation: &OperationDescription, values: &Array) -> anyhow::Result<Vec<Any>> {
        let reference = |value: &Dynamic| value.read_lock::<Self>().map(|handle| handle.to_string());
        let texts = values.iter().map(|value| value::to_json(value, &reference).map(|json| json.to_string()));
        let texts = texts.collect::<anyhow::Result<Vec<String>>>()?;
        let resolve = |url: &str| {
            let object = self.orb.string_to_object(url);
            object.map(|object| object.ior().clone()).map_err(|error| error.to_string())
        };
        let types = |name: &str| -> Option<TypeCode> { self.idl.iter().find_map(|idl| idl.type_code(name).ok()) };
        let context =
            TextContext::new().value_types(self.object.interface().value_types()).types(&types).references(&resolve);
        Ok(operation.read_argument_list(&texts, &context)?)
    }
}

/// The object's reference in stringified form.
impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.object().fmt(f)
    }
}

/// The exception with its members.
fn explained(error: RequestError) -> anyhow::Error {
    match error {
        RequestError::Raised(raised) => {
            let members = DynAny::new(&raised.exception).map(|members| format!(" {members}")).unwrap_or_default();
            anyhow!("{raised}{members}")
        }
        RequestError::System(exception) => anyhow!(exception),
        other => anyhow!(other),
    }
}
