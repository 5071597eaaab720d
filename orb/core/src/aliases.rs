//! Plain object keys: names for objects of this server or others, for references of the form
//! `corbaloc:…/Name`.
//!
//! A client that uses such a key is forwarded to the object: with LOCATION_FORWARD for a request, with
//! OBJECT_FORWARD for a LocateRequest. Keys of adapters begin with an octet that no text begins with, so that
//! they need no look-up here.

use std::collections::HashMap;

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{
    RwLock,
    atomic::{AtomicBool, Ordering},
};

use crate::{ObjectRef, Orb};

/// The most names of one ORB.
const MAX_ALIASES: usize = 65_536;

/// The least first octet of a text. Keys of adapters begin with a version number, which is less.
const FIRST: u8 = b' ';

/// The plain keys of one ORB. They are IORs: references with their ORB would keep it alive for ever.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    /// Whether there have been any.
    are_used: AtomicBool,
    by_name: RwLock<HashMap<Vec<u8>, Ior>>,
}

impl Aliases {
    /// The object with this key.
    #[inline]
    pub(crate) fn target(&self, key: &[u8]) -> Option<Ior> {
        let is_text = key.first().is_some_and(|first| *first >= FIRST);
        if is_text && self.are_used.load(Ordering::Acquire) { self.find(key) } else { None }
    }

    #[cold]
    fn find(&self, key: &[u8]) -> Option<Ior> {
        self.by_name.read().get(key).cloned()
    }
}

impl Orb {
    /// Gives an object a plain object key, so that `corbaloc:…/name` refers to it: clients are forwarded to
    /// the object's own reference. The name takes precedence over an adapter's key. A name in use gets the
    /// new object.
    ///
    /// The server listens once it has objects. Without an activated object, [`Orb::listen`] makes it listen.
    ///
    /// # Errors
    /// BAD_PARAM for a name that is empty, or begins with a control character like keys of adapters;
    /// IMP_LIMIT for more than 65,536 names.
    pub fn set_object_key_alias(&self, name: impl Into<Vec<u8>>, object: &ObjectRef) -> Result<(), SystemException> {
        let name = name.into();
        if name.first().is_none_or(|first| *first < FIRST) {
            return Err(SystemException::bad_param(0, CompletionStatus::No).with_detail(|| {
                format!("invalid object key `{}`: it is empty or begins with a control character", name.escape_ascii())
            }));
        }
        let aliases = self.aliases().get_or_make(Aliases::default);
        let mut by_name = aliases.by_name.write();
        if by_name.len() >= MAX_ALIASES && !by_name.contains_key(&name) {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(|| format!("{MAX_ALIASES} plain object keys are in use, the limit")));
        }
        by_name.insert(name, object.ior().clone());
        aliases.are_used.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes a plain object key; returns false if it was not in use.
    pub fn remove_object_key_alias(&self, name: impl AsRef<[u8]>) -> bool {
        self.aliases().get().is_some_and(|aliases: &Aliases| aliases.by_name.write().remove(name.as_ref()).is_some())
    }
}
