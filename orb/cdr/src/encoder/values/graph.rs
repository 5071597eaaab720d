//! The arena that a graph of values is.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, OnceLock, Weak};

use super::Entry;

/// Values that may hold links to each other. It is finished when it is made, and never changes.
#[derive(Debug)]
pub(crate) struct Graph {
    anchor: Arc<Anchor>,
    entries: Vec<Entry>,
}

/// What links inside a graph hold on to: it exists before the graph, and owns nothing of it.
#[derive(Debug, Default)]
pub(crate) struct Anchor {
    graph: OnceLock<Weak<Graph>>,
}

impl Anchor {
    /// The graph, if it is finished and somebody keeps it.
    pub(crate) fn graph(&self) -> Option<Arc<Graph>> {
        self.graph.get()?.upgrade()
    }
}

/// A place in a graph: who it is that a link leads to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) anchor: Arc<Anchor>,
    pub(crate) index: u32,
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.anchor, &other.anchor) && self.index == other.index
    }
}

impl Graph {
    /// Finishes the graph of an anchor: from here on its links can be followed.
    pub(crate) fn finish(anchor: Arc<Anchor>, entries: Vec<Entry>) -> Arc<Self> {
        let graph = Arc::new(Self { anchor, entries });
        // An anchor belongs to who makes the graph, who finishes it once.
        let _ = graph.anchor.graph.set(Arc::downgrade(&graph));
        graph
    }

    pub(crate) fn anchor(&self) -> &Arc<Anchor> {
        &self.anchor
    }

    /// # Panics
    /// If no such value is there: indices come from places in this graph.
    pub(crate) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }
}

thread_local! {
    /// Values to be dropped once the graph that is being dropped on this thread is gone.
    static DOOMED: RefCell<Option<Vec<Entry>>> = const { RefCell::new(None) };
}

impl Drop for Graph {
    /// A list of a million values, each made with the next, is as many graphs inside each other: the stack would not hold
    /// that many calls.
    fn drop(&mut self) {
        let mut entries = mem::take(&mut self.entries);
        let is_outermost = DOOMED.try_with(|doomed| match &mut *doomed.borrow_mut() {
            Some(doomed) => {
                doomed.append(&mut entries);
                false
            }
            none => {
                *none = Some(Vec::new());
                true
            }
        });
        // Where the thread is ending there is no list any more, and what is left drops as it comes.
        if is_outermost != Ok(true) {
            return;
        }
        while !entries.is_empty() {
            drop(entries);
            entries = DOOMED.with_borrow_mut(|doomed| doomed.as_mut().map(mem::take).unwrap_or_default());
        }
        DOOMED.set(None);
    }
}
