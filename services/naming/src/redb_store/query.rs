//! Questions about the graph.

use std::ops::Bound;

use redb::ReadableTable;
use spandrel::services::cos_naming::{BindingType, NameComponent};

use super::failure::Failure;
use super::key_range::range_of;
use crate::encoding::{corrupt, decode_path, decode_target, key, split_key, type_of};
use crate::store::{ContextId, StoreError, Target};

/// A question about the graph.
pub(super) trait Query {
    type Output;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Self::Output, Failure>;
}

/// The target of a name.
pub(super) struct Lookup<'n>(pub(super) ContextId, pub(super) &'n NameComponent);

impl Query for Lookup<'_> {
    type Output = Target;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Target, Failure> {
        let Self(context, name) = self;
        match bindings.get(key(context, name).as_slice())? {
            Some(value) => Ok(decode_target(value.value())?),
            None if contexts.get(context.0)?.is_some() => Err(StoreError::NotBound.into()),
            None => Err(StoreError::NoContext(context).into()),
        }
    }
}

/// A page of a listing.
pub(super) struct List<'n> {
    pub(super) context: ContextId,
    pub(super) after: Option<&'n NameComponent>,
    pub(super) limit: usize,
}

impl Query for List<'_> {
    type Output = Vec<(NameComponent, BindingType)>;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Self::Output, Failure> {
        if contexts.get(self.context.0)?.is_none() {
            return Err(StoreError::NoContext(self.context).into());
        }
        let range = range_of(self.context);
        let after = self.after.map(|name| key(self.context, name));
        let start = after.as_deref().map_or(Bound::Included(range.first.as_slice()), Bound::Excluded);
        let mut page = Vec::new();
        for entry in bindings.range::<&[u8]>((start, range.end()))?.take(self.limit) {
            let (key, value) = entry?;
            let (_, name) = split_key(key.value()).ok_or_else(|| corrupt("a key of a binding"))?;
            page.push((name, type_of(value.value())?));
        }
        Ok(page)
    }
}

/// The path by which a context was made.
pub(super) struct PathOf(pub(super) ContextId);

impl Query for PathOf {
    type Output = Option<String>;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        _: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Option<String>, Failure> {
        let record = contexts.get(self.0.0)?.ok_or(StoreError::NoContext(self.0))?;
        Ok(decode_path(record.value())?)
    }
}
