//! Copies of a store that is in use.

use std::borrow::Borrow;
use std::fmt;
use std::path::Path;

use redb::{
    Builder, Database, Key, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition, Value,
    WriteTransaction,
};

use crate::damage::catch_damage;
use crate::error::OpenCause;
use crate::header::StoreHeader;
use crate::storage::{Layout, begin_write, create_file};

/// The state of a store after its last commit, which is copied while later changes are made.
///
/// The copy is a store of the same service with an id of its own, and needs no redo log: it takes the place of the
/// store's file while the service does not run.
pub struct Backup {
    reading: ReadTransaction,
    layout: &'static Layout,
}

impl Backup {
    /// Begins a copy of the present state of a database, which has the tables of this layout and a header. The
    /// database keeps the pages of this state until the value is dropped.
    ///
    /// # Errors
    /// Those of `redb`.
    pub fn begin(database: &Database, layout: &'static Layout) -> Result<Self, redb::Error> {
        Ok(Self { reading: database.begin_read()?, layout })
    }

    /// Writes the copy to a new file, which only the user of the process can read (on Unix). It is durable. The file
    /// has its name once it is complete.
    ///
    /// # Errors
    /// A file that exists or cannot be written; a store that cannot be read.
    pub fn write(&self, file: &Path) -> Result<(), redb::Error> {
        catch_damage(|| create_file(&mut Builder::new(), file, |database| self.copy_to(database)))
    }

    fn copy_to(&self, copy: &Database) -> Result<(), redb::Error> {
        let header = StoreHeader::read(&self.reading, self.layout.service, self.layout.version);
        let header = header.map_err(|cause| match cause {
            OpenCause::Database(error) => error,
            cause => redb::Error::Corrupted(cause.to_string()),
        })?;
        let header = header.ok_or_else(|| redb::Error::Corrupted("it has no header".to_owned()))?;
        let transaction = begin_write(copy)?;
        (self.layout.copy)(&self.reading, &transaction)?;
        header.backup()?.write(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup").field("layout", self.layout).finish_non_exhaustive()
    }
}

/// Copies the entries of a table into another database. For [`Layout::copy`].
///
/// # Errors
/// Those of `redb`.
pub fn copy_table<K, V>(
    table: TableDefinition<'_, K, V>,
    reading: &ReadTransaction,
    copy: &WriteTransaction,
) -> Result<(), redb::Error>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let mut copied = copy.open_table(table)?;
    for entry in reading.open_table(table)?.iter()? {
        let (key, value) = entry?;
        copied.insert(key.value().borrow(), value.value().borrow())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::service::Service;
    use crate::storage::Storage;
    use crate::store_file::StoreFile;

    const NUMBERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("numbers");
    const CACHE: usize = 1 << 20;

    static LAYOUT: Layout = layout(Service::Repository, 7);
    static LATER: Layout = layout(Service::Repository, 8);
    static OTHER: Layout = layout(Service::Activator, 7);

    const fn layout(service: Service, version: u32) -> Layout {
        let create = |transaction: &WriteTransaction| {
            transaction.open_table(NUMBERS)?;
            Ok(())
        };
        let copy = |reading: &ReadTransaction, copy: &WriteTransaction| copy_table(NUMBERS, reading, copy);
        Layout { service, version, create, convert: |_, _| Ok(()), copy }
    }

    fn open(file: &Path) -> StoreFile {
        StoreFile::open(Storage::file(file), &LAYOUT, CACHE).unwrap()
    }

    fn insert(store: &mut StoreFile, number: u64) {
        let value = number.to_le_bytes();
        let insert = |writing: &WriteTransaction| {
            writing.open_table(NUMBERS)?.insert(number, value.as_slice())?;
            Ok(())
        };
        store.change(insert).unwrap();
    }

    fn numbers(store: &mut StoreFile) -> Vec<u64> {
        let read = store.read(|reading| {
            let table = reading.open_table(NUMBERS)?;
            let entries = table.iter()?.map(|entry| {
                let (number, value) = entry?;
                assert_eq!(value.value(), number.value().to_le_bytes());
                Ok(number.value())
            });
            entries.collect()
        });
        read.unwrap()
    }

    #[test]
    fn a_copy_has_the_state_of_one_instant_while_changes_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Mutex::new(open(&folder.path().join("store")));
        let acknowledged = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..60 {
                    insert(&mut store.lock().unwrap(), number);
                    acknowledged.store(number + 1, Ordering::Release);
                }
            });
            for nth in 0..6 {
                let file = folder.path().join(format!("copy{nth}"));
                let before = acknowledged.load(Ordering::Acquire);
                let backup = store.lock().unwrap().begin_backup().unwrap();
                let after = acknowledged.load(Ordering::Acquire) + 1; // one may be made and not acknowledged
                insert(&mut store.lock().unwrap(), u64::MAX - nth);
                backup.write(&file).unwrap();
                let found = numbers(&mut open(&file));
                let count = found.iter().filter(|number| **number < 60).count() as u64;
                assert!((before..=after).contains(&count), "{count} of {before} to {after}");
                let earlier = (0..nth).rev().map(|nth| u64::MAX - nth);
                assert_eq!(found, (0..count).chain(earlier).collect::<Vec<_>>());
            }
        });
        assert_eq!(numbers(&mut store.lock().unwrap()).len(), 66);
    }

    #[test]
    fn a_copy_is_a_store_with_an_id_of_its_own_and_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let [file, copy, again] = ["store", "copy", "again"].map(|name| folder.path().join(name));
        let mut store = open(&file);
        insert(&mut store, 1);
        store.begin_backup().unwrap().write(&copy).unwrap();
        open(&copy).begin_backup().unwrap().write(&again).unwrap();
        assert_eq!(numbers(&mut open(&again)), [1]);
        drop(store);
        let headers = [&file, &copy, &again].map(|file| Storage::file(file).open(&LAYOUT, CACHE).unwrap().1);
        assert_eq!([headers[0].id, headers[1].id], [headers[1].origin, headers[2].origin]);
        assert!(headers[0].id != headers[1].id && headers[1].id != headers[2].id);

        let before = fs::read(&copy).unwrap();
        let error = open(&file).begin_backup().unwrap().write(&copy).unwrap_err();
        assert!(error.to_string().contains("exists"), "{error}");
        assert!(fs::read(&copy).unwrap() == before);
        let nowhere = folder.path().join("none").join("copy");
        open(&file).begin_backup().unwrap().write(&nowhere).unwrap_err();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "a part of a copy remains");
    }

    #[test]
    fn a_copy_of_another_service_or_version_or_with_damage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, copy, other] = ["store", "copy", "other"].map(|name| folder.path().join(name));
        (0..20).for_each(|number| insert(&mut open(&file), number));
        open(&file).begin_backup().unwrap().write(&copy).unwrap();
        let error = |file: &Path, layout| {
            let opened = StoreFile::open(Storage::file(file), layout, CACHE);
            let error = opened.map(drop).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot open the store {}: ", file.display())), "{error}");
            assert!(!error.contains('\n'), "{error}");
            error
        };
        assert!(error(&copy, &LATER).ends_with("its version is 7, and this program reads version 8"));
        assert!(error(&copy, &OTHER).ends_with("it is the store of the interface repository"));
        let sound = fs::read(&copy).unwrap();
        for length in (0..sound.len()).step_by(20_480).flat_map(|length| [length, length + 1]) {
            fs::write(&other, &sound[..length]).unwrap();
            error(&other, &LAYOUT);
        }
        let mut refused = 0;
        for place in (0..320).step_by(13).chain((320..sound.len()).step_by(4_099)) {
            let mut octets = sound.clone();
            octets[place] ^= 0x10;
            fs::write(&other, octets).unwrap();
            match StoreFile::open(Storage::file(&other), &LAYOUT, CACHE) {
                // It is in a part that the database does not use.
                Ok(mut store) => assert_eq!(numbers(&mut store), (0..20).collect::<Vec<_>>(), "octet {place}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 10, "{refused}");
    }
}
