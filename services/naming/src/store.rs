//! The store of a naming graph: contexts, and the bindings in each.
//!
//! Each operation is one atomic step. Compound names, references and exceptions belong to the servants
//! of the service; a store knows contexts by their ids and references as values.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel::types::Ior;

/// The number of a context within its store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The root context, which always exists.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {}", self.0)
    }
}

/// The object or context that a name is bound to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// An object, or a context that takes no part in compound names.
    Object(Ior),
    /// A context of this store.
    Context(ContextId),
    /// A context of another server.
    ForeignContext(Ior),
}

impl Target {
    /// Its type in a listing.
    #[must_use]
    pub fn binding_type(&self) -> BindingType {
        match self {
            Self::Object(_) => BindingType::Nobject,
            Self::Context(_) | Self::ForeignContext(_) => BindingType::Ncontext,
        }
    }
}

/// The treatment of a name that is bound already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfBound {
    /// It is an error (`bind`).
    Fail,
    /// A binding of the same type is replaced (`rebind`).
    Replace,
}

/// The reason why a step of a [`Store`] has failed, and whether it has changed the graph.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The context does not exist, or no longer.
    #[error("{0} does not exist")]
    NoContext(ContextId),
    /// The name is not bound.
    #[error("the name is not bound")]
    NotBound,
    /// The name is bound already.
    #[error("the name is bound already")]
    AlreadyBound,
    /// `rebind` of a context, or `rebind_context` of an object: the present type.
    #[error("the name is bound to another type")]
    OtherType(BindingType),
    /// The context to be destroyed has bindings.
    #[error("{0} has bindings")]
    NotEmpty(ContextId),
    /// The root context cannot be destroyed.
    #[error("the root context cannot be destroyed")]
    Root,
    /// A reference without an encoding, or an entry that the format of omniNames cannot hold.
    #[error("the reference cannot be stored: {0}")]
    Invalid(String),
    /// The store could not be read or written. Nothing was changed.
    #[error("the store is not available")]
    Unavailable(#[source] Arc<dyn Error + Send + Sync>),
    /// The change was made or not: the store failed while it was written.
    #[error("the store failed during the change")]
    Uncertain(#[source] Arc<dyn Error + Send + Sync>),
    /// The store contains octets that it did not write.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
}

/// A function that is called with the outcome of a change.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A naming graph. Its changes are durable, as its options say, before an operation returns.
pub trait Store: fmt::Debug + Send + Sync {
    /// The target of a name in a context.
    ///
    /// # Errors
    /// `NoContext`, `NotBound`.
    fn lookup(&self, context: ContextId, name: &NameComponent) -> Result<Target, StoreError>;

    /// Binds a name in a context to an object or a context.
    ///
    /// # Errors
    /// `NoContext`; `AlreadyBound`, or `OtherType` for a replacement. A [`Target::Context`] need not exist.
    fn bind(
        &self,
        context: ContextId,
        name: &NameComponent,
        target: &Target,
        if_bound: IfBound,
    ) -> Result<(), StoreError>;

    /// Removes a binding.
    ///
    /// # Errors
    /// `NoContext`, `NotBound`.
    fn unbind(&self, context: ContextId, name: &NameComponent) -> Result<(), StoreError>;

    /// Removes a binding, if it has this target.
    ///
    /// # Errors
    /// `NoContext`; `NotBound`, also if the name has another target.
    fn unbind_target(&self, context: ContextId, name: &NameComponent, target: &Target) -> Result<(), StoreError>;

    /// Whether [`bind_then`](Self::bind_then) and [`unbind_then`](Self::unbind_then) may return before the change is
    /// made, so that no thread waits for the disk.
    fn defers(&self) -> bool {
        false
    }

    /// As [`bind`](Self::bind), and calls `done` with the outcome, in any thread.
    fn bind_then(&self, context: ContextId, name: &NameComponent, target: &Target, if_bound: IfBound, done: Done) {
        done(self.bind(context, name, target, if_bound));
    }

    /// As [`unbind`](Self::unbind), and calls `done` with the outcome, in any thread.
    fn unbind_then(&self, context: ContextId, name: &NameComponent, done: Done) {
        done(self.unbind(context, name));
    }

    /// Makes a context that is bound to no name.
    ///
    /// # Errors
    /// Only `Unavailable`, `Uncertain` and `Corrupt`, which every change has.
    fn new_context(&self) -> Result<ContextId, StoreError>;

    /// Makes a context and binds it, in one step.
    ///
    /// # Errors
    /// `NoContext`, `AlreadyBound`.
    fn bind_new_context(&self, context: ContextId, name: &NameComponent) -> Result<ContextId, StoreError>;

    /// Destroys an empty context. If a `bind` in it happens at the same time, exactly one of both succeeds.
    ///
    /// # Errors
    /// `NoContext`, `NotEmpty`, `Root`.
    fn destroy(&self, context: ContextId) -> Result<(), StoreError>;

    /// At most `limit` bindings after a name, in the store's order. Bindings that exist throughout a series of such
    /// calls appear in it once.
    ///
    /// # Errors
    /// `NoContext`.
    fn list(
        &self,
        context: ContextId,
        after: Option<&NameComponent>,
        limit: usize,
    ) -> Result<Vec<(NameComponent, BindingType)>, StoreError>;

    /// The path by which a context was made, in string form: empty for the root context, `None` for contexts that
    /// were made without a name.
    ///
    /// # Errors
    /// `NoContext`.
    fn path(&self, context: ContextId) -> Result<Option<String>, StoreError>;
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    /// A store without deferral, which has no bindings.
    #[derive(Debug, Default)]
    struct Empty {
        bound: Mutex<Vec<String>>,
    }

    impl Store for Empty {
        fn lookup(&self, _: ContextId, _: &NameComponent) -> Result<Target, StoreError> {
            Err(StoreError::NotBound)
        }

        fn bind(&self, _: ContextId, name: &NameComponent, _: &Target, _: IfBound) -> Result<(), StoreError> {
            self.bound.lock().unwrap().push(name.id.clone());
            Ok(())
        }

        fn unbind(&self, _: ContextId, _: &NameComponent) -> Result<(), StoreError> {
            Err(StoreError::NotBound)
        }

        fn unbind_target(&self, _: ContextId, _: &NameComponent, _: &Target) -> Result<(), StoreError> {
            Err(StoreError::NotBound)
        }

        fn new_context(&self) -> Result<ContextId, StoreError> {
            Ok(ContextId(1))
        }

        fn bind_new_context(&self, context: ContextId, _: &NameComponent) -> Result<ContextId, StoreError> {
            Err(StoreError::NoContext(context))
        }

        fn destroy(&self, context: ContextId) -> Result<(), StoreError> {
            Err(StoreError::NoContext(context))
        }

        fn list(
            &self,
            _: ContextId,
            _: Option<&NameComponent>,
            _: usize,
        ) -> Result<Vec<(NameComponent, BindingType)>, StoreError> {
            Ok(Vec::new())
        }

        fn path(&self, _: ContextId) -> Result<Option<String>, StoreError> {
            Ok(None)
        }
    }

    #[test]
    fn a_store_that_does_not_defer_makes_a_change_before_it_returns() {
        let store = Empty::default();
        assert!(!store.defers());
        let name = NameComponent { id: "grace".to_owned(), kind: String::new() };
        let target = Target::Context(ContextId(1));
        let (outcomes, reported) = mpsc::channel();
        let done = || {
            let outcomes = outcomes.clone();
            Box::new(move |outcome| outcomes.send(outcome).unwrap())
        };
        store.bind_then(ContextId::ROOT, &name, &target, IfBound::Fail, done());
        reported.try_recv().unwrap().unwrap();
        assert_eq!(*store.bound.lock().unwrap(), ["grace"]);
        store.unbind_then(ContextId::ROOT, &name, done());
        assert!(matches!(reported.try_recv().unwrap(), Err(StoreError::NotBound)));
    }

    #[test]
    fn a_binding_to_any_context_has_the_type_of_contexts() {
        let ior = Ior { type_id: "IDL:Object:1.0".to_owned(), profiles: Vec::new() };
        for (target, expected) in [
            (Target::Object(ior.clone()), BindingType::Nobject),
            (Target::Context(ContextId::ROOT), BindingType::Ncontext),
            (Target::ForeignContext(ior), BindingType::Ncontext),
        ] {
            assert_eq!(target.binding_type(), expected, "{target:?}");
        }
    }

    #[test]
    fn an_error_names_the_context_by_its_number() {
        assert_eq!(StoreError::NoContext(ContextId(17)).to_string(), "context 17 does not exist");
    }
}
