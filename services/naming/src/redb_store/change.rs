//! Changes of the graph.

use redb::{ReadableTable as _, WriteTransaction};
use spandrel::services::cos_naming::NameComponent;

use super::failure::Failure;
use super::key_range::range_of;
use super::tables::{TableWrite, Tables};
use crate::encoding::{decode_path, encode_path, encode_target, join, key, type_of};
use crate::store::{ContextId, IfBound, StoreError, Target};

/// The outcome of a change, with the context that it made.
pub(super) type Outcome = Result<Option<ContextId>, StoreError>;

/// A step that changes the graph.
pub(super) enum Change {
    Bind {
        context: ContextId,
        key: Vec<u8>,
        value: Vec<u8>,
        if_bound: IfBound,
    },
    /// With a value, only a binding that has it is removed.
    Unbind {
        context: ContextId,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    NewContext,
    BindNewContext {
        context: ContextId,
        name: NameComponent,
    },
    Destroy {
        context: ContextId,
    },
}

/// The outcome of each change, each of which sees those before it; and their writes, encoded.
pub(super) fn apply_changes(txn: &WriteTransaction, changes: &[Change]) -> Result<(Vec<Outcome>, Vec<u8>), Failure> {
    let mut tables = Tables::open(txn)?;
    let mut outcomes = Vec::with_capacity(changes.len());
    for change in changes {
        match tables.apply(change) {
            Ok(created) => outcomes.push(Ok(created)),
            Err(Failure::Store(error)) => outcomes.push(Err(error)),
            Err(failure) => return Err(failure),
        }
    }
    Ok((outcomes, tables.into_writes()))
}

impl Tables<'_> {
    fn apply(&mut self, change: &Change) -> Result<Option<ContextId>, Failure> {
        match change {
            Change::Bind { context, key, value, if_bound } => {
                self.require(*context)?;
                let present = self.bindings.get(key.as_slice())?.map(|present| type_of(present.value())).transpose()?;
                match (present, if_bound) {
                    (None, _) => {}
                    (Some(_), IfBound::Fail) => return Err(StoreError::AlreadyBound.into()),
                    (Some(present), IfBound::Replace) if present == type_of(value)? => {}
                    (Some(present), IfBound::Replace) => return Err(StoreError::OtherType(present).into()),
                }
                self.write(TableWrite::Binding { key, value: Some(value) })?;
                Ok(None)
            }
            Change::Unbind { context, key, value } => {
                self.require(*context)?;
                let present = self.bindings.get(key.as_slice())?.ok_or(StoreError::NotBound)?;
                if value.as_ref().is_some_and(|value| present.value() != value.as_slice()) {
                    return Err(StoreError::NotBound.into());
                }
                drop(present);
                self.write(TableWrite::Binding { key, value: None })?;
                Ok(None)
            }
            Change::NewContext => self.create(None).map(Some),
            Change::BindNewContext { context, name } => {
                let parent = self.require(*context)?;
                let key = key(*context, name);
                if self.bindings.get(key.as_slice())?.is_some() {
                    return Err(StoreError::AlreadyBound.into());
                }
                let path = parent.map(|parent| join(&parent, name));
                let created = self.create(path.as_deref())?;
                let value = encode_target(&Target::Context(created))?;
                self.write(TableWrite::Binding { key: &key, value: Some(&value) })?;
                Ok(Some(created))
            }
            Change::Destroy { context } => {
                self.require(*context)?;
                if self.bindings.range::<&[u8]>(range_of(*context).as_tuple())?.next().transpose()?.is_some() {
                    return Err(StoreError::NotEmpty(*context).into());
                }
                if *context == ContextId::ROOT {
                    return Err(StoreError::Root.into());
                }
                self.write(TableWrite::Context { id: context.0, record: None })?;
                Ok(None)
            }
        }
    }

    /// The path of a context that must exist.
    fn require(&self, context: ContextId) -> Result<Option<String>, Failure> {
        let record = self.contexts.get(context.0)?.ok_or(StoreError::NoContext(context))?;
        Ok(decode_path(record.value())?)
    }

    fn create(&mut self, path: Option<&str>) -> Result<ContextId, Failure> {
        let mut id = fastrand::u64(1..);
        while self.contexts.get(id)?.is_some() {
            id = fastrand::u64(1..);
        }
        self.write(TableWrite::Context { id, record: Some(&encode_path(path)) })?;
        Ok(ContextId(id))
    }
}
