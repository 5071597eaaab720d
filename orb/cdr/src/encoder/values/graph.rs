//! Graphs of values, as arenas.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, OnceLock, Weak};

use super::Entry;

/// Values that may refer to each other. A graph is complete on creation, and immutable.
#[derive(Debug)]
pub(crate) struct Graph {
    anchor: Arc<Anchor>,
    entries: Vec<Entry>,
}

/// The target of links inside a graph: it exists before the graph, and does not own it.
#[derive(Debug, Default)]
pub(crate) struct Anchor {
    graph: OnceLock<Weak<Graph>>,
}

impl Anchor {
    /// The graph, if it is complete and still referenced.
    pub(crate) fn graph(&self) -> Option<Arc<Graph>> {
        self.graph.get()?.upgrade()
    }
}

/// A position in a graph: the target of a link.
#[derive(Clone, Debug)]
pub(crate) struct GraphPosition {
    pub(crate) anchor: Arc<Anchor>,
    pub(crate) index: u32,
}

impl PartialEq for GraphPosition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.anchor, &other.anchor) && self.index == other.index
    }
}

impl Graph {
    /// Completes the graph of an anchor: its links can be followed from here on.
    pub(crate) fn finish(anchor: Arc<Anchor>, entries: Vec<Entry>) -> Arc<Self> {
        let graph = Arc::new(Self { anchor, entries });
        // The builder of a graph owns its anchor and completes it once.
        let _ = graph.anchor.graph.set(Arc::downgrade(&graph));
        graph
    }

    pub(crate) fn anchor(&self) -> &Arc<Anchor> {
        &self.anchor
    }

    /// # Panics
    /// If the graph has no such value: indices come from positions in this graph.
    pub(crate) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }
}

thread_local! {
    /// Values to be dropped after the graph that is being dropped on this thread.
    static PENDING_DROPS: RefCell<Option<Vec<Entry>>> = const { RefCell::new(None) };
}

impl Drop for Graph {
    /// A list of a million values, each created with the next, is as many graphs inside each other: recursive
    /// drops would overflow the stack.
    fn drop(&mut self) {
        let mut entries = mem::take(&mut self.entries);
        let is_outermost = PENDING_DROPS.try_with(|doomed| match &mut *doomed.borrow_mut() {
            Some(doomed) => {
                doomed.append(&mut entries);
                false
            }
            none => {
                *none = Some(Vec::new());
                true
            }
        });
        // At the end of the thread the list no longer exists, and the rest is dropped directly.
        if is_outermost != Ok(true) {
            return;
        }
        while !entries.is_empty() {
            drop(entries);
            entries = PENDING_DROPS.with_borrow_mut(|doomed| doomed.as_mut().map(mem::take).unwrap_or_default());
        }
        PENDING_DROPS.set(None);
    }
}
