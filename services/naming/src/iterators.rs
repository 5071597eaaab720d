//! Binding iterators: the rest of a listing, page by page.
//!
//! An iterator is a position in the store, and no copy of the bindings. Their number is limited, and one that no
//! client calls for some time expires; the specification allows a server to destroy them at any time (2.3.10).

use spandrel::authorization::PathCheck;
use spandrel::net::sync::{Arc, Mutex, Weak};
use spandrel::services::cos_naming::{
    Binding, BindingIterator, BindingIteratorServant, BindingIteratorSkeleton, BindingList, BindingType, NameComponent,
};
use spandrel::{CompletionStatus, Poa, SystemException};
use spandrel_daemon::{ActiveIterators, IteratorOptions};

use crate::failure::system;
use crate::store::{ContextId, Store};

/// The most bindings in one reply.
const MAX_LISTED: usize = 10_000;

/// The iterators of a service.
#[derive(Debug)]
pub(crate) struct Iterators {
    active: ActiveIterators,
    path_check: Option<PathCheck>,
}

impl Iterators {
    pub(crate) fn new(poa: Poa, options: IteratorOptions, path_check: Option<PathCheck>) -> Self {
        Self { active: ActiveIterators::new(poa, options), path_check }
    }

    fn add(self: &Arc<Self>, cursor: Cursor) -> Result<BindingIterator, SystemException> {
        let servant = Iterator {
            path: cursor.store.path(cursor.context).map_err(|error| system(&error))?,
            cursor: Mutex::new(cursor),
            iterators: Arc::downgrade(self),
            path_check: self.path_check.clone(),
        };
        Ok(self.active.activate(Arc::new(BindingIteratorSkeleton::new(servant)))?.unchecked_narrow())
    }
}

/// A position in a context.
#[derive(Debug)]
struct Cursor {
    store: Arc<dyn Store>,
    context: ContextId,
    /// The last binding that was returned.
    after: Option<NameComponent>,
}

impl Cursor {
    /// The next bindings, and whether there are more.
    fn next(&mut self, how_many: usize) -> Result<(BindingList, bool), SystemException> {
        let listed =
            self.store.list(self.context, self.after.as_ref(), how_many + 1).map_err(|error| system(&error))?;
        let has_more = listed.len() > how_many;
        let bindings: BindingList = listed.into_iter().take(how_many).map(binding).collect();
        if let Some(last) = bindings.last() {
            self.after = last.binding_name.first().cloned();
        }
        Ok((bindings, has_more))
    }
}

fn binding((name, binding_type): (NameComponent, BindingType)) -> Binding {
    Binding { binding_name: vec![name], binding_type }
}

/// A listing (2.3.9): the first bindings, and an iterator over the others, if there are any.
pub(crate) fn list(
    iterators: &Arc<Iterators>,
    store: &Arc<dyn Store>,
    context: ContextId,
    how_many: u32,
) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
    let mut cursor = Cursor { store: Arc::clone(store), context, after: None };
    let (bindings, has_more) = cursor.next(bounded(how_many))?;
    let iterator = if has_more { Some(iterators.add(cursor)?) } else { None };
    Ok((bindings, iterator))
}

fn bounded(how_many: u32) -> usize {
    usize::try_from(how_many).unwrap_or(usize::MAX).min(MAX_LISTED)
}

/// The servant of an iterator.
#[derive(Debug)]
struct Iterator {
    /// The path of its context.
    path: Option<String>,
    path_check: Option<PathCheck>,
    cursor: Mutex<Cursor>,
    iterators: Weak<Iterators>,
}

impl Iterator {
    /// Whether the peer may use the context of the iterator: keys of iterators can be guessed.
    fn permit(&self, operation: &str) -> Result<(), SystemException> {
        self.path_check.as_ref().map_or(Ok(()), |check| check.check(operation, self.path.as_deref()))
    }

    fn next(&self, operation: &str, how_many: usize) -> Result<BindingList, SystemException> {
        self.permit(operation)?;
        if let Some(iterators) = self.iterators.upgrade() {
            iterators.active.record_call()?;
        }
        self.cursor.lock().next(how_many).map(|(bindings, _)| bindings)
    }
}

impl BindingIteratorServant for Iterator {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let next = self.next("next_one", 1)?.pop();
        // Without a binding the out parameter is meaningless, but an enumerator and a sequence must be sent.
        Ok((next.is_some(), next.unwrap_or_default()))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        if how_many == 0 {
            // "It is illegal to pass 0" (2.3.10.2).
            return Err(SystemException::bad_param(0, CompletionStatus::No));
        }
        let bindings = self.next("next_n", bounded(how_many))?;
        Ok((!bindings.is_empty(), bindings))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.permit("destroy")?;
        self.iterators.upgrade().map_or(Ok(()), |iterators| iterators.active.destroy_current())
    }
}
