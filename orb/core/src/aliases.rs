//! Plain object keys: names under which a server's objects, or others, are found by `corbaloc:…/Name`.
//!
//! Whoever asks for such a key is told where the object is: a request by LOCATION_FORWARD, a question by OBJECT_FORWARD. Keys that
//! adapters make begin with an octet that no text begins with, so that for them nothing is looked up.

use std::collections::HashMap;

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{
    RwLock,
    atomic::{AtomicBool, Ordering},
};

use crate::{ObjectRef, Orb};

/// Names that one ORB may have.
const MAX_ALIASES: usize = 65_536;

/// What text begins with at least; keys of adapters begin with a version, which is less.
const FIRST: u8 = b' ';

/// The plain keys of one ORB. Plain references: those that held their ORB would keep it for ever.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    /// True if there have been any.
    are_used: AtomicBool,
    by_name: RwLock<HashMap<Vec<u8>, Ior>>,
}

impl Aliases {
    /// The object that is known by this key.
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
    /// Makes an object known by a plain object key, so that `corbaloc:…/name` is it: those who ask are told to ask the object's own
    /// reference from then on. It goes before what an adapter knows by that key. A name that is known already gets the new object.
    ///
    /// The server listens once it has objects; where nothing was activated, [`Orb::listen`] says when and where.
    ///
    /// # Errors
    /// BAD_PARAM for a name that is empty, or begins with a control character as keys of adapters do; IMP_LIMIT for more names than
    /// 65,536.
    pub fn set_object_key_alias(&self, name: impl Into<Vec<u8>>, object: &ObjectRef) -> Result<(), SystemException> {
        let name = name.into();
        if name.first().is_none_or(|first| *first < FIRST) {
            return Err(SystemException::bad_param(0, CompletionStatus::No)
                .with_detail(|| format!("`{}` does not begin as text does", name.escape_ascii())));
        }
        let aliases = self.aliases();
        let mut by_name = aliases.by_name.write();
        if by_name.len() >= MAX_ALIASES && !by_name.contains_key(&name) {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(|| format!("{MAX_ALIASES} objects are known by plain keys")));
        }
        by_name.insert(name, object.ior().clone());
        aliases.are_used.store(true, Ordering::Release);
        Ok(())
    }

    /// Forgets a plain object key; false if nothing was known by it.
    pub fn remove_object_key_alias(&self, name: impl AsRef<[u8]>) -> bool {
        self.aliases().by_name.write().remove(name.as_ref()).is_some()
    }
}
