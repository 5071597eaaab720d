//! Interoperable object references as plain values (CORBA 3.3 Part 2, 7.6.2).
//!
//! Profiles belong to `spandrel-giop`, and the use of references to `spandrel-orb`, which binds them during
//! decoding through a [`Binder`](crate::Binder): there is no global ORB. The encoding of references is in
//! `reference`.

use std::{any::Any, ops::Deref, sync::Arc};

use crate::CdrError;

/// An object reference: the type of the object, and its profiles. Nil has neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ior {
    /// The repository id of the most derived interface known to the reference's creator; may be empty.
    pub type_id: String,
    /// The ways to reach the object, in order of preference.
    pub profiles: Vec<TaggedProfile>,
}

impl Ior {
    /// Whether it is nil, the reference to no object.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty() && self.type_id.is_empty()
    }
}

/// A profile: a protocol's tag and an encapsulation in the form of this protocol.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedProfile {
    /// The protocol's profile id: 0 is IIOP, 1 is multiple components.
    pub tag: u32,
    /// The octets of the encapsulation, its byte order octet included.
    pub data: Vec<u8>,
}

/// A part of a profile that a tag identifies, such as a policy or another address.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedComponent {
    /// The component's id, from the OMG's registry of tags (`IOP::ComponentId`).
    pub tag: u32,
    /// Its octets, most often an encapsulation.
    pub data: Vec<u8>,
}

/// A live reference, as generated code holds it; nil is `Option::None` of it.
pub trait Reference {
    /// The plain reference, as encoded.
    fn ior(&self) -> &Ior;
}

/// A [`Reference`] that can be created from the result of a [`Binder`](crate::Binder).
pub trait FromBound: Reference + Clone {
    /// The typed form of a bound reference.
    ///
    /// # Errors
    /// [`CdrError::Unbound`] if another ORB's binder made it.
    fn from_bound(bound: Arc<dyn Any + Send + Sync>) -> Result<Self, CdrError>;
}

/// A type that dereferences to a reference and is encoded as that: a borrowed reference, or a typed one.
pub trait ReferencePointer: Deref {}

impl<R: ?Sized> ReferencePointer for &R {}

impl<P: ReferencePointer<Target: Reference> + ?Sized> Reference for P {
    fn ior(&self) -> &Ior {
        (**self).ior()
    }
}

/// The reference of an IDL interface, as generated code defines it. It wraps the reference of the first base interface,
/// or an untyped one, and dereferences to it.
pub trait TypedReference: ReferencePointer<Target: Sized> + Clone {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Wraps a reference without a check of its interface.
    fn wrap(inner: Self::Target) -> Self;
}

impl<R: TypedReference<Target: FromBound>> FromBound for R {
    fn from_bound(bound: Arc<dyn Any + Send + Sync>) -> Result<Self, CdrError> {
        R::Target::from_bound(bound).map(R::wrap)
    }
}
