//! An encoder's state of values: their graphs, and the values already written.
//!
//! The Rust form of values, and their encoding, belong to `value_type`.

mod entry;
mod graph;

use std::any::Any;
use std::collections::HashMap;

pub(crate) use entry::EntryVtable;
pub use entry::{Cast, Entry};
pub(crate) use graph::{Anchor, Graph, GraphPosition};

/// The values that an encoder has written.
#[derive(Debug)]
pub(crate) struct WrittenValues<'a> {
    /// The position of each value's tag. The key is the graph's anchor, which lives as long as the values,
    /// and the index.
    pub(crate) places: HashMap<(usize, u32), usize>,
    /// The position of each repository id, and of the list that begins with it.
    pub(crate) ids: HashMap<&'static str, usize>,
    pub(crate) lists: HashMap<&'static str, usize>,
    /// The graph of each value that is being written, a [`Graph`]. Erased, since a graph's values encode
    /// themselves: the encoder does not depend on their type.
    pub(crate) graphs: Vec<&'a (dyn Any + Send + Sync)>,
    /// The position at which the outermost of them began.
    pub(crate) start: usize,
    /// The number of them in chunks.
    pub(crate) level: i32,
    /// The open chunk: its size, and the position of its content.
    pub(crate) chunk: Option<(Placeholder, usize)>,
    /// The position behind the last end tag.
    pub(crate) ended: Option<usize>,
    /// [`WrittenValues::forget_from`], behind a pointer so that programs without values do not link it.
    forget: fn(&mut WrittenValues<'_>, usize),
}

impl WrittenValues<'_> {
    pub(crate) fn new() -> Self {
        Self {
            places: HashMap::new(),
            ids: HashMap::new(),
            lists: HashMap::new(),
            graphs: Vec::new(),
            start: 0,
            level: 0,
            chunk: None,
            ended: None,
            forget: |values, position| values.forget_from(position),
        }
    }

    /// Forgets values from `position` on, which are being removed.
    pub(crate) fn truncate(&mut self, position: usize) {
        (self.forget)(self, position);
    }

    fn forget_from(&mut self, position: usize) {
        self.places.retain(|_, at| *at < position);
        self.ids.retain(|_, at| *at < position);
        self.lists.retain(|_, at| *at < position);
        if position <= self.start {
            self.graphs.clear();
            (self.level, self.chunk) = (0, None);
        }
        self.ended = None;
    }
}

/// A placeholder for an `unsigned long` that is written later; see
/// [`Encoder::placeholder`](crate::Encoder::placeholder).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Placeholder(pub(super) usize);
