//! A servant with a dynamic skeleton.

use std::sync::atomic::{AtomicI32, Ordering};

use spandrel::Poa;
use spandrel::dynamic::{ArgMode, DynamicImplementation, DynamicServant, NamedValue, NvList, ServerRequest};
use spandrel::{
    SystemException,
    types::{Interface, TypeCode},
};

use crate::features_idl::{Refused, Target};

/// Activates the servant.
///
/// # Errors
/// If the ORB cannot listen.
pub(super) fn activate(root: &Poa) -> Result<Target, SystemException> {
    Ok(Target::unchecked_narrow(&root.activate(DynamicServant::new(DynamicTarget::default()))?))
}

/// A dynamic `Target` with the operations that the clients call.
#[derive(Default)]
struct DynamicTarget {
    noted: AtomicI32,
}

/// A list of parameters of these modes and types.
fn parameters(all: impl IntoIterator<Item = (ArgMode, TypeCode)>) -> NvList {
    let mut list = NvList::new();
    for (mode, type_code) in all {
        list.add(NamedValue::of_type("", mode, type_code));
    }
    list
}

impl DynamicImplementation for DynamicTarget {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            "halve" => halve(request),
            "note" => {
                let arguments =
                    request.arguments(parameters([(ArgMode::In, TypeCode::LONG), (ArgMode::In, TypeCode::ULONG)]))?;
                self.noted.store(arguments.extract(0)?, Ordering::Release);
                Ok(())
            }
            "noted" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.noted.load(Ordering::Acquire))
            }
            "_get_name" => {
                request.arguments(NvList::new())?;
                request.set_result("dynamic")
            }
            _ => Err(request.unknown_operation()),
        }
    }

    fn primary_interface(&self, _: &[u8]) -> String {
        Target::REPOSITORY_ID.to_owned()
    }
}

fn halve(request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
    let types = [(ArgMode::In, TypeCode::LONG), (ArgMode::InOut, TypeCode::STRING), (ArgMode::Out, TypeCode::DOUBLE)];
    let arguments = request.arguments(parameters(types))?;
    let (whole, text): (i32, String) = (arguments.extract(0)?, arguments.extract(1)?);
    if whole < 0 {
        return request.raise(&Refused { why: "negative".to_owned() });
    }
    arguments.set(1, text.repeat(2).as_str())?;
    arguments.set(2, &(f64::from(whole) / 2.0))?;
    request.set_result(&(whole / 2))
}
