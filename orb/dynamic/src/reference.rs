//! References to objects of interfaces without a Rust type.

use spandrel_cdr::{Any, Encode, ExtractError, TcKind, TypeCode};
use spandrel_giop::SystemException;
use spandrel_orb::ObjectRef;

use crate::named::bad_param;

fn is_reference(type_code: &TypeCode) -> bool {
    matches!(type_code.without_aliases().kind(), TcKind::ObjRef | TcKind::Component | TcKind::Home)
}

/// The reference in an [`Any`], of any interface; `None` if it is nil. As [`Any::to_object`], with the
/// exceptions of this crate.
///
/// # Errors
/// BAD_PARAM if it holds no reference; a reference that the receiving ORB cannot use.
pub fn any_to_object(any: &Any) -> Result<Option<ObjectRef>, SystemException> {
    any.to_object().map_err(|error| match error {
        ExtractError::Value(error) => error.into(),
        _ => bad_param().with_detail(|| format!("`{}` is not a reference", any.type_code())),
    })
}

/// A reference, or nil, as a value of this type.
///
/// # Errors
/// BAD_PARAM if the type is not an interface.
pub fn object_to_any(object: Option<&ObjectRef>, type_code: &TypeCode) -> Result<Any, SystemException> {
    if !is_reference(type_code) {
        return Err(bad_param().with_detail(|| format!("`{type_code}` is not an interface")));
    }
    let object = object.cloned();
    let written = Any::write(type_code.clone(), |out| {
        let mut octets = spandrel_cdr::Encoder::new(out.wire());
        object.encode(&mut octets)?;
        out.octets(&octets.to_vec());
        Ok(())
    })?;
    // Decoded with a binder, like a received reference.
    let Some(object) = &object else { return Ok(written) };
    Ok(Any::read(type_code.clone(), &mut written.value().with_binder(object.orb()))?)
}
