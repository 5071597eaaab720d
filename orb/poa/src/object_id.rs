//! Object ids: the identifiers of objects within an adapter (CORBA 3.3 Part 1, 15.2.1, "Object Id").

use std::{borrow::Borrow, fmt, ops::Deref};

/// The octets that identify an object within its adapter.
///
/// ```
/// # mod poa { pub use spandrel_poa::ObjectId; }
/// use poa::ObjectId; // of spandrel
///
/// assert_eq!(ObjectId::from("ada").as_bytes(), b"ada");
/// ```
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ObjectId(Box<[u8]>);

impl ObjectId {
    /// The octets of the id, chosen by the application or the adapter.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for ObjectId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for ObjectId {
    fn from(octets: &[u8]) -> Self {
        Self(octets.into())
    }
}

impl From<Vec<u8>> for ObjectId {
    fn from(octets: Vec<u8>) -> Self {
        Self(octets.into())
    }
}

impl From<&str> for ObjectId {
    /// `string_to_ObjectId`: the text's octets.
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for ObjectId {
    /// `string_to_ObjectId`: the text's octets.
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&String> for ObjectId {
    /// `string_to_ObjectId`: the text's octets.
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Self> for ObjectId {
    fn from(id: &Self) -> Self {
        id.clone()
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId(\"{}\")", self.0.escape_ascii())
    }
}
