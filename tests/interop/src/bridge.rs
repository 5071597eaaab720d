//! A bridge: a server without generated code, which hands all that it is asked on to another one.
//!
//! Requests come in by dynamic servants and go out as dynamic requests, whose types are those of the IDL, read when the program
//! starts. References that the hub's attributes give are bridged, too; others are handed on as they are.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use spandrel::dynamic::{
    DescribedCall, DescribedOperations, DescribedServant, Descriptions, DynamicObject, NvList, RequestError,
    any_to_object, describe, object_to_any,
};
use spandrel::{Any, ObjectRef, Orb, Poa};

/// Hands requests on to an object, and bridges the objects that its attributes give.
struct Bridge {
    poa: Poa,
    idl: Arc<Descriptions>,
    beyond: DynamicObject,
}

/// The interfaces of the types' suite.
pub const TYPES: &str = include_str!("../idl/interop.idl");

/// The interfaces of the value types' suite.
pub const VALUES: &str = include_str!("../idl/values.idl");

/// Activates a bridge to the object with this reference, whose interface is in the IDL, and returns its own reference as a string.
///
/// # Errors
/// If the reference is none, or if the ORB cannot listen.
pub fn activate(orb: &Orb, hub: &str, idl: &str) -> Result<String> {
    let idl = describe(idl)?;
    let hub = orb.string_to_object(hub)?;
    let poa = Poa::root(orb)?;
    let bridged = Bridge::activate(&poa, &Arc::new(idl), hub).context("the hub's interface is not in the IDL")?;
    Ok(orb.object_to_string(&bridged))
}

impl Bridge {
    /// The bridge to an object; nothing if its interface is unknown.
    fn activate(poa: &Poa, idl: &Arc<Descriptions>, object: ObjectRef) -> Option<ObjectRef> {
        let interface = Arc::new(idl.interface(object.type_id()).ok()?);
        let beyond = DynamicObject::new(object, Arc::clone(&interface));
        let bridge = Self { poa: poa.clone(), idl: Arc::clone(idl), beyond };
        poa.activate(DescribedServant::described(interface, bridge)).ok()
    }
}

impl DescribedOperations for Bridge {
    fn call(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError> {
        let result = DescribedOperations::call(&self.beyond, call, arguments)?;
        let name = &*call.operation.name;
        if name == "shutdown" {
            self.beyond.object().orb().shutdown(false)?;
        }
        if !name.starts_with("_get_the_") {
            return Ok(result);
        }
        let bridged = any_to_object(&result)?.and_then(|object| Self::activate(&self.poa, &self.idl, object));
        Ok(match bridged {
            Some(bridged) => object_to_any(Some(&bridged), &call.operation.result)?,
            None => result,
        })
    }
}
