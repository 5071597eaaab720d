//! The files of a store: who may read them, and damage.

use std::fs;

use redb::TableDefinition;
use spandrel_naming::encoding::{encode_target, key};
use spandrel_naming::store::{ContextId, IfBound, Store};
use spandrel_naming::{OpenError, RedbStore, RedbStoreOptions, STORE_FILE};
use tempfile::TempDir;

use crate::store::{object, step};

/// Copies of the files of a store in use, which has this many names.
fn copies(names: usize) -> TempDir {
    let [folder, copies] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let store = RedbStore::open(&folder.path().join(STORE_FILE), &RedbStoreOptions::default()).unwrap();
    for nth in 0..names {
        store.bind(ContextId::ROOT, &step(&format!("name {nth}")), &object(nth), IfBound::Fail).unwrap();
    }
    for file in fs::read_dir(&folder).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copies.path().join(file.file_name())).unwrap();
    }
    copies
}

fn open(folder: &TempDir) -> Result<RedbStore, OpenError> {
    RedbStore::open(&folder.path().join(STORE_FILE), &RedbStoreOptions::default())
}

#[test]
fn an_empty_or_lost_store_is_an_error() {
    let folder = copies(3);
    let file = folder.path().join(STORE_FILE);
    assert_eq!(open(&folder).unwrap().check().unwrap(), 3);
    fs::write(&file, []).unwrap();
    let text = |error: OpenError| error.to_string();
    assert!(text(open(&folder).unwrap_err()).contains("empty"));
    fs::remove_file(&file).unwrap();
    assert!(text(open(&folder).unwrap_err()).contains("remove it to begin anew"));
    fs::remove_file(folder.path().join(format!("{STORE_FILE}.log"))).unwrap();
    assert_eq!(open(&folder).unwrap().check().unwrap(), 0);
}

/// The damage of any page is found, or concerns none that is in use. The state before it is not taken for the present one.
#[test]
fn damage_is_an_error_of_the_opening() {
    let folder = copies(30);
    let file = folder.path().join(STORE_FILE);
    let sound = fs::read(&file).unwrap();
    let mut errors = 0;
    for place in (4..sound.len() - 8).step_by(1_536) {
        let mut damaged = sound.clone();
        damaged[place..place + 8].copy_from_slice(&[0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8]);
        fs::write(&file, damaged).unwrap();
        match open(&folder) {
            Ok(mut store) => assert_eq!(store.check().unwrap(), 30, "octet {place}"),
            Err(_) => errors += 1,
        }
    }
    assert!(errors >= 3, "{errors}");
}

#[cfg(unix)]
#[test]
fn other_users_cannot_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).unwrap();
    store.bind(ContextId::ROOT, &step("name"), &object(1), IfBound::Fail).unwrap();
    store.back_up(&folder.path().join("copy")).unwrap();
    let mut files = 0;
    for file in fs::read_dir(&folder).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o077, 0);
        files += 1;
    }
    assert_eq!(files, 3);
}

/// Makes the file of a store of a version before the header, with these names, of which the last ones are in the log
/// alone.
fn write_earlier_store(folder: &TempDir, in_database: &[&str], in_log: &[&str]) {
    const SALT: u64 = 0x1234_5678_9abc;
    let file = folder.path().join(STORE_FILE);
    let database = redb::Database::create(&file).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let contexts = TableDefinition::<u64, &[u8]>::new("contexts");
        transaction.open_table(contexts).unwrap().insert(0, [1].as_slice()).unwrap();
        let mut bindings = transaction.open_table(TableDefinition::<&[u8], &[u8]>::new("bindings")).unwrap();
        for name in in_database {
            bindings
                .insert(key(ContextId::ROOT, &step(name)).as_slice(), encode_target(&object(1)).unwrap().as_slice())
                .unwrap();
        }
        let mut meta = transaction.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap();
        meta.insert("format", if in_log.is_empty() { 1 } else { 2 }).unwrap();
        if !in_log.is_empty() {
            meta.insert("salt", SALT).unwrap();
            meta.insert("log_size", 4_096).unwrap();
        }
    }
    transaction.commit().unwrap();
    let mut log = Vec::new();
    for (nth, name) in in_log.iter().enumerate() {
        let mut payload = vec![1];
        for octets in [key(ContextId::ROOT, &step(name)), encode_target(&object(1)).unwrap()] {
            payload.extend((octets.len() as u64).to_le_bytes());
            payload.extend(octets);
        }
        let checked = [
            u32::try_from(payload.len()).unwrap().to_le_bytes().as_slice(),
            &SALT.to_le_bytes(),
            &(nth as u64).to_le_bytes(),
            &payload,
        ]
        .concat();
        log.extend(crc32fast::hash(&checked).to_le_bytes());
        log.extend(checked);
        log.resize(log.len().next_multiple_of(8), 0);
    }
    log.resize(4_096, 0);
    fs::write(folder.path().join(format!("{STORE_FILE}.log")), log).unwrap();
}

fn names(store: &RedbStore) -> Vec<String> {
    store.list(ContextId::ROOT, None, 100).unwrap().into_iter().map(|(name, _)| name.id).collect()
}

#[test]
fn a_store_of_a_version_before_the_header_is_converted_with_the_changes_of_its_log() {
    for in_log in [&[][..], &["c", "d"]] {
        let folder = tempfile::tempdir().unwrap();
        write_earlier_store(&folder, &["a", "b"], in_log);
        let expected = [&["a", "b"][..], in_log].concat();
        let file = folder.path().join(STORE_FILE);
        let before = fs::read(&file).unwrap();
        assert_eq!(names(&RedbStore::open_read_only(&file).unwrap()), expected);
        assert!(fs::read(&file).unwrap() == before);
        for _ in 0..2 {
            let store = open(&folder).unwrap();
            assert_eq!(names(&store), expected);
            store.bind(ContextId::ROOT, &step("z"), &object(1), IfBound::Fail).unwrap();
            store.unbind(ContextId::ROOT, &step("z")).unwrap();
        }
    }
}

#[test]
fn a_damaged_log_of_a_version_before_the_header_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_earlier_store(&folder, &["a", "b"], &["c", "d"]);
    let log = folder.path().join(format!("{STORE_FILE}.log"));
    let sound = fs::read(&log).unwrap();
    for place in [0, 4, 8, 20, 30] {
        let mut damaged = sound.clone();
        damaged[place] ^= 0xff;
        fs::write(&log, damaged).unwrap();
        let error = open(&folder).unwrap_err().to_string();
        assert!(error.contains("damaged") && error.contains(".log"), "{error}");
    }
    let inverted: Vec<u8> = sound.iter().map(|octet| !octet).collect();
    for other in [inverted.as_slice(), &sound[..4_000], &[]] {
        fs::write(&log, other).unwrap();
        open(&folder).unwrap_err();
    }
    fs::write(&log, sound).unwrap();
    assert_eq!(names(&open(&folder).unwrap()), ["a", "b", "c", "d"]);
}
