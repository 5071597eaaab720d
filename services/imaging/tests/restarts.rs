//! Images after a restart, leftovers of uploads, and files that do not belong to the database.

use std::fs;
use std::path::Path;

use spandrel::{Endpoint, Orb};
use spandrel_imaging::imaging::Store;
use spandrel_imaging::{IMAGE_FOLDER, ImagingError, ImagingOptions, ImagingService, STORE_FILE, check_store};

use crate::support::{elements, files, grey, receive, upload};

/// Runs `work` with a store in this folder, which is ended after it.
fn with_store<T>(folder: &Path, work: impl FnOnce(&Store) -> T) -> T {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let service = ImagingService::start(&orb, ImagingOptions::new(folder)).unwrap();
    let outcome = work(&service.store().narrow().unwrap());
    service.stop().unwrap();
    orb.shutdown().unwrap();
    outcome
}

/// The reason for which a store does not start.
fn refusal(folder: &Path) -> String {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let error = ImagingService::start(&orb, ImagingOptions::new(folder)).unwrap_err();
    assert!(matches!(error, ImagingError::Store(_)), "{error:?}");
    orb.shutdown().unwrap();
    format!("{error:?}")
}

#[test]
fn images_survive_a_restart_and_leftovers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = grey(300, 100);
    let (image, next) = with_store(folder.path(), |store| {
        let image = upload(store, &file).unwrap();
        let (next, _) = store.upload("tests", &elements(&[]), 10).unwrap();
        (image, next)
    });
    let images = folder.path().join(IMAGE_FOLDER);
    let mut remaining = vec!["notes.txt".to_owned(), format!("{image}.tiff"), format!("{image}.tiles")];
    remaining.sort_unstable();
    // An upload that ended at each of its steps, and files of others.
    for name in [".tiff.part", ".tiles.part", ".tiff", ".tiles"] {
        fs::write(images.join(format!("{next}{name}")), "half").unwrap();
    }
    fs::write(images.join("notes.txt"), "of somebody").unwrap();
    with_store(folder.path(), |store| {
        assert_eq!(files(&images), remaining);
        assert!(receive(&store.download(image).unwrap()) == file);
        assert!(upload(store, &file).unwrap() > next, "numbers are not used again");
    });
    assert_eq!(check_store(folder.path()).unwrap().0, 2);
}

#[test]
fn a_store_without_its_files_or_with_newer_ones_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = grey(300, 100);
    let (database, images) = (folder.path().join(STORE_FILE), folder.path().join(IMAGE_FOLDER));
    let first = with_store(folder.path(), |store| upload(store, &file).unwrap());
    let older = fs::read(&database).unwrap();
    let second = with_store(folder.path(), |store| upload(store, &file).unwrap());

    // An older copy of the database would lose the image.
    let newer = fs::read(&database).unwrap();
    fs::write(&database, older).unwrap();
    let reason = refusal(folder.path());
    assert!(reason.contains("newer than the store") && reason.contains(&format!("{second}.ti")), "{reason}");
    assert_eq!(files(&images).len(), 4);
    fs::write(&database, newer).unwrap();

    let path = images.join(format!("{first}.tiff"));
    let mut damaged = file.clone();
    damaged[100] ^= 1;
    fs::write(&path, damaged).unwrap();
    let text = format!("{:?}", check_store(folder.path()).unwrap_err());
    assert!(text.contains("checksum") && text.contains(path.to_str().unwrap()), "{text}");
    fs::write(&path, &file[..100]).unwrap();
    assert!(refusal(folder.path()).contains("100 octets"));
    fs::remove_file(&path).unwrap();
    assert!(refusal(folder.path()).contains("restore it"));
}
