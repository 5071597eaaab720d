//! A bridge: a server without generated code that forwards each request to another server.
//!
//! Dynamic servants receive the requests, and dynamic requests send them on; the types come from the IDL,
//! which is parsed at program start. References from the hub's attributes are bridged as well; other
//! references are passed unchanged.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use spandrel::dynamic::{
    DescribedCall, DescribedOperations, DescribedServant, Descriptions, DynamicObject, NvList, RequestError,
    any_to_object, describe, object_to_any,
};
use spandrel::{ObjectRef, Orb, Poa, types::Any};

/// Forwards requests to an object, and bridges the objects that its attributes return.
struct Bridge {
    poa: Poa,
    idl: Arc<Descriptions>,
    beyond: DynamicObject,
}

/// The IDL of the type suite.
pub const TYPES: &str = include_str!("../idl/interop.idl");

/// The IDL of the value type suite.
pub const VALUES: &str = include_str!("../idl/values.idl");

/// Activates a bridge to the object, whose interface must be in the IDL, and returns the bridge's stringified
/// reference.
///
/// # Errors
/// If the reference is malformed, or if the ORB cannot listen.
pub fn activate(orb: &Orb, hub: &str, idl: &str) -> Result<String> {
    let idl = describe(idl)?;
    let hub = orb.string_to_object(hub)?;
    let poa = Poa::root(orb)?;
    let bridged = Bridge::activate(&poa, &Arc::new(idl), hub).context("the hub's interface is not in the IDL")?;
    Ok(orb.object_to_string(&bridged))
}

impl Bridge {
    /// Activates a bridge to an object; `None` if its interface is unknown.
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
            self.beyond.object().orb().begin_shutdown()?;
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
