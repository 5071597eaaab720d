//! Maps from external to internal identifiers, with a locking strategy (`ACE_Map_Manager`; paper 002, 3.1).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;

use spandrel_sync::{Guarded, Lock, Mutex};

/// The reason for which an identifier was not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// It is bound already.
    #[error("the identifier is bound already")]
    AlreadyBound,
    /// The map has as many bindings as it may have.
    #[error("the map is full")]
    Full,
}

/// A map from external identifiers, such as addresses and port numbers, to internal ones, such as control blocks and
/// streams.
///
/// `L` is the locking strategy: [`Mutex`], [`AdaptiveMutex`](spandrel_sync::AdaptiveMutex),
/// [`RwLock`](spandrel_sync::RwLock) where it is searched more often than it changes, or
/// [`NullMutex`](spandrel_sync::NullMutex) for one thread alone.
///
/// ```
/// use spandrel_stream::{BindError, MapManager};
/// use spandrel_sync::RwLock;
///
/// let ports = MapManager::<u16, &str, RwLock>::new();
/// ports.bind(2809, "naming")?;
/// assert_eq!(ports.bind(2809, "other"), Err(BindError::AlreadyBound));
/// assert_eq!(ports.find(&2809), Some("naming"));
/// assert_eq!(ports.unbind(&2809), Some("naming"));
/// # Ok::<(), BindError>(())
/// ```
pub struct MapManager<E, I, L: Lock = Mutex> {
    bindings: Guarded<HashMap<E, I>, L>,
    limit: usize,
}

impl<E: Eq + Hash, I, L: Lock> MapManager<E, I, L> {
    /// An empty map without a limit on its bindings.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An empty map of at most that many bindings.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { bindings: Guarded::new(HashMap::new()), limit }
    }

    /// Binds an identifier that is not bound.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(&self, external: E, internal: I) -> Result<(), BindError> {
        let mut bindings = self.bindings.lock();
        let is_full = bindings.len() >= self.limit;
        match bindings.entry(external) {
            Entry::Occupied(_) => Err(BindError::AlreadyBound),
            Entry::Vacant(_) if is_full => Err(BindError::Full),
            Entry::Vacant(place) => {
                place.insert(internal);
                Ok(())
            }
        }
    }

    /// Binds an identifier; returns the internal one that it was bound to.
    ///
    /// # Errors
    /// [`BindError::Full`].
    pub fn rebind(&self, external: E, internal: I) -> Result<Option<I>, BindError> {
        let mut bindings = self.bindings.lock();
        if bindings.len() >= self.limit && !bindings.contains_key(&external) {
            return Err(BindError::Full);
        }
        Ok(bindings.insert(external, internal))
    }

    /// Ends a binding; returns the internal identifier.
    pub fn unbind(&self, external: &E) -> Option<I> {
        self.bindings.lock().remove(external)
    }

    /// Returns the internal identifier bound to the external one.
    pub fn find(&self, external: &E) -> Option<I>
    where
        I: Clone,
    {
        self.bindings.read().get(external).cloned()
    }

    /// Calls a function with the internal identifier, which may change it, under the lock.
    pub fn find_with<R>(&self, external: &E, act: impl FnOnce(&mut I) -> R) -> Option<R> {
        self.bindings.lock().get_mut(external).map(act)
    }

    /// Calls a function with each binding, in no certain order, under the lock.
    pub fn for_each(&self, mut act: impl FnMut(&E, &I)) {
        self.bindings.read().iter().for_each(|(external, internal)| act(external, internal));
    }

    /// Ends the bindings for which the function returns false, under the lock.
    pub fn retain(&self, is_kept: impl FnMut(&E, &mut I) -> bool) {
        self.bindings.lock().retain(is_kept);
    }

    /// All bindings at this moment, in no certain order, for an iteration without the lock.
    pub fn bindings(&self) -> Vec<(E, I)>
    where
        E: Clone,
        I: Clone,
    {
        let bindings = self.bindings.read();
        bindings.iter().map(|(external, internal)| (external.clone(), internal.clone())).collect()
    }

    /// The identifiers that are bound.
    pub fn len(&self) -> usize {
        self.bindings.read().len()
    }

    /// Whether no identifier is bound.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E: Eq + Hash, I, L: Lock> Default for MapManager<E, I, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: fmt::Debug, I: fmt::Debug, L: Lock> fmt::Debug for MapManager<E, I, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bindings.try_read() {
            Some(bindings) => f.debug_map().entries(bindings.iter()).finish(),
            None => f.write_str("MapManager(<locked>)"),
        }
    }
}
