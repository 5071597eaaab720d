//! Plain object keys (`set_object_key_alias`): names for objects of this server or others, for references of the form
//! `corbaloc:…/Name`.
//!
//! Keys without an entry go to the [`PlainKeyLookup`], if there is one: an adapter that serves all plain keys.
//!
//! A client that uses such a key is forwarded to the object: with LOCATION_FORWARD for a request, with
//! OBJECT_FORWARD for a LocateRequest. Keys of adapters begin with an octet that no text begins with, so that
//! they need no look-up here.

use std::{collections::HashMap, fmt};

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering},
};

/// The most names of one ORB.
const MAX_ALIASES: usize = 65_536;

/// The least first octet of a text. Keys of adapters begin with a version number, which is less.
const FIRST: u8 = b' ';

/// Finds the object with a plain key that is no alias.
pub(crate) type PlainKeyLookup = dyn Fn(&[u8]) -> Option<Ior> + Send + Sync;

/// The plain keys of one ORB. They are IORs: references with their ORB would keep it alive for ever.
#[derive(Default)]
pub(crate) struct Aliases {
    /// Whether there have been any.
    are_used: AtomicBool,
    by_name: RwLock<HashMap<Vec<u8>, Ior>>,
    /// For all other keys.
    lookup: RwLock<Option<Arc<PlainKeyLookup>>>,
}

impl Aliases {
    /// The object with this key.
    #[inline]
    pub(crate) fn target(&self, key: &[u8]) -> Option<Ior> {
        let is_text = key.first().is_some_and(|first| *first >= FIRST);
        if is_text && self.are_used.load(Ordering::Acquire) { self.find(key) } else { None }
    }

    /// Gives an object this key; a key in use gets the new object.
    ///
    /// # Errors
    /// BAD_PARAM for a name that is empty or begins with a control character, IMP_LIMIT for more than 65,536.
    pub(crate) fn insert(&self, name: Vec<u8>, target: Ior) -> Result<(), SystemException> {
        if name.first().is_none_or(|first| *first < FIRST) {
            return Err(SystemException::bad_param(0, CompletionStatus::No).with_detail(|| {
                format!("invalid object key `{}`: it is empty or begins with a control character", name.escape_ascii())
            }));
        }
        let mut by_name = self.by_name.write();
        if by_name.len() >= MAX_ALIASES && !by_name.contains_key(&name) {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(|| format!("{MAX_ALIASES} plain object keys are in use, the limit")));
        }
        by_name.insert(name, target);
        self.are_used.store(true, Ordering::Release);
        Ok(())
    }

    /// Sets the search for keys that are no alias, in place of an earlier one.
    pub(crate) fn set_lookup(&self, lookup: Arc<PlainKeyLookup>) {
        let old = self.lookup.write().replace(lookup);
        self.are_used.store(true, Ordering::Release);
        drop(old);
    }

    /// Removes a key; returns false if it was not in use.
    pub(crate) fn remove(&self, name: &[u8]) -> bool {
        self.by_name.write().remove(name).is_some()
    }

    #[cold]
    fn find(&self, key: &[u8]) -> Option<Ior> {
        let alias = self.by_name.read().get(key).cloned();
        alias.or_else(|| {
            let lookup = self.lookup.read().clone();
            lookup.and_then(|lookup| lookup(key))
        })
    }
}

impl fmt::Debug for Aliases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aliases").field("by_name", &self.by_name).finish_non_exhaustive()
    }
}
