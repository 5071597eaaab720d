//! Interoperable object references as plain values (CORBA 3.3 Part 2, 7.6.2).
//!
//! What a profile says belongs to `spandrel-giop`, and what a reference can do to `spandrel-orb`, which binds one as it
//! is decoded through [`Binder`](crate::Binder): there is no global ORB to ask. How references are written and read is in
//! `reference`.

use std::{any::Any, sync::Arc};

use crate::CdrError;

/// An object reference: what type the object was said to have, and where it may be reached. Nil has neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ior {
    /// The repository id of the most derived interface known to whoever made the reference; may be empty.
    pub type_id: String,
    /// The ways to reach the object, in order of preference.
    pub profiles: Vec<TaggedProfile>,
}

impl Ior {
    /// True for the reference to no object.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty() && self.type_id.is_empty()
    }
}

/// One way to reach an object: a protocol's tag and an encapsulation that only this protocol reads.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedProfile {
    /// The protocol's profile id: 0 is IIOP, 1 is multiple components.
    pub tag: u32,
    /// The encapsulation's octets.
    pub data: Vec<u8>,
}

/// A named piece of a profile: policies, code sets, other addresses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedComponent {
    /// The component's id.
    pub tag: u32,
    /// Its octets, most often an encapsulation.
    pub data: Vec<u8>,
}

/// A live reference, as generated code holds one; nil is `Option::None` of it.
pub trait Reference {
    /// The plain form, which goes on the wire.
    fn ior(&self) -> &Ior;
}

/// A [`Reference`] that can be made from what a [`Binder`](crate::Binder) returns.
pub trait FromBound: Reference + Clone {
    /// The typed form of a bound reference.
    ///
    /// # Errors
    /// [`CdrError::Unbound`] if another ORB's binder made it.
    fn from_bound(bound: Arc<dyn Any + Send + Sync>) -> Result<Self, CdrError>;
}

impl<R: Reference + ?Sized> Reference for &R {
    fn ior(&self) -> &Ior {
        (**self).ior()
    }
}
