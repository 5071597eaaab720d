//! The files of a store: who may read them, and damage.

use std::fs;

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
    let text = |error: OpenError| std::error::Error::source(&error).unwrap().to_string();
    assert!(text(open(&folder).unwrap_err()).contains("empty"));
    fs::remove_file(&file).unwrap();
    assert!(text(open(&folder).unwrap_err()).contains("remove it to begin anew"));
    fs::remove_file(folder.path().join(format!("{STORE_FILE}.log"))).unwrap();
    assert_eq!(open(&folder).unwrap().check().unwrap(), 0);
}

/// The damage of any page is found, or concerns none that is in use. The state before it is not taken for the present one.
#[test]
fn damage_is_an_error_of_the_opening_or_the_check() {
    let folder = copies(30);
    let file = folder.path().join(STORE_FILE);
    let sound = fs::read(&file).unwrap();
    let mut errors = 0;
    for place in (4..sound.len() - 8).step_by(512) {
        let mut damaged = sound.clone();
        damaged[place..place + 8].copy_from_slice(&[0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8]);
        fs::write(&file, damaged).unwrap();
        match open(&folder).map(|mut store| store.check()) {
            Ok(Ok(names)) => assert_eq!(names, 30, "octet {place}"),
            Ok(Err(_)) | Err(_) => errors += 1,
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
