//! Values of value types as an encoder has them: the graphs that they are in, and which of them it has written.
//!
//! What values are in Rust, and how they are written, is `value_type`'s.

mod entry;
mod graph;

use std::collections::HashMap;

pub(crate) use entry::About;
pub use entry::{Cast, Entry};
pub(crate) use graph::{Anchor, Graph, Place};

use super::Hole;

/// What an encoder remembers of the values that it has written.
#[derive(Debug)]
pub(crate) struct WrittenValues<'a> {
    /// Where each value's tag is. Values are told apart by their graph's anchor, which lives as long as they do.
    pub(crate) places: HashMap<(usize, u32), usize>,
    /// Where each repository id is, and the list that begins with it.
    pub(crate) ids: HashMap<&'static str, usize>,
    pub(crate) lists: HashMap<&'static str, usize>,
    /// The graph of each value that is being written.
    pub(crate) graphs: Vec<&'a Graph>,
    /// Where the outermost of them began.
    pub(crate) start: usize,
    /// How many of them are in chunks.
    pub(crate) level: i32,
    /// The open chunk: its size, and where its content begins.
    pub(crate) chunk: Option<(Hole, usize)>,
    /// The position behind the last end tag.
    pub(crate) ended: Option<usize>,
    /// [`WrittenValues::forget_from`], which programs that write no values are without.
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

    /// Forgets what is being taken back.
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
