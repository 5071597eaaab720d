//! The change of one record of a table.

use std::borrow::Borrow;

use redb::{Key, StorageError, Table, Value};

/// Sets the record with this key to a value, or removes it, if there is one.
///
/// # Errors
/// Those of the database.
pub fn set_record<'k, 'v, K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, V>,
    key: impl Borrow<K::SelfType<'k>>,
    value: Option<impl Borrow<V::SelfType<'v>>>,
) -> Result<(), StorageError> {
    match value {
        Some(value) => drop(table.insert(key, value)?),
        None => drop(table.remove(key)?),
    }
    Ok(())
}
