//! Hostile files and requests: each is refused with the reason, and leaves nothing.

use std::fs;
use std::time::Duration;

use spandrel::SystemExceptionKind;
use spandrel::bulk::{BulkClient, BulkError};
use spandrel_imaging::imaging::store::{DownloadError, FindError, UploadError, ViewError};
use spandrel_imaging::imaging::{DataElements, Refused, RefusedPart, Region};
use tiff::encoder::Compression;
use tiff::encoder::colortype::{CMYK8, Gray8, Gray32};

use crate::support::{Served, elements, grey, receive, region, tiff_file, upload};

/// The offset of a tag's value in a little-endian TIFF file.
fn value_of(file: &[u8], tag: u16) -> usize {
    let directory = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes([file[directory], file[directory + 1]]));
    let entries = (0..count).map(|nth| directory + 2 + nth * 12);
    entries.into_iter().find(|entry| u16::from_le_bytes([file[*entry], file[entry + 1]]) == tag).unwrap() + 8
}

/// A file with another value of a tag.
fn with_value(file: &[u8], tag: u16, value: u32) -> Vec<u8> {
    let mut file = file.to_vec();
    let at = value_of(&file, tag);
    let is_short = u16::from_le_bytes([file[at - 6], file[at - 5]]) == 3;
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    if is_short {
        file[at - 6] = 4; // LONG
    }
    file
}

const IMAGE_WIDTH: u16 = 256;
const IMAGE_LENGTH: u16 = 257;
const ROWS_PER_STRIP: u16 = 278;

#[test]
fn files_that_are_no_images_are_refused_with_the_reason_and_leave_nothing() {
    let served = Served::with(|options| {
        options.limits.strip = 1 << 20;
        options.limits.pixels = 8 << 20;
    });
    let (_, good) = grey(300, 200);
    let zeros = vec![0_u8; 2_000 * 1_000];
    let deflate = Compression::Deflate(tiff::encoder::DeflateLevel::Best);
    let bomb = tiff_file::<Gray8>((2_000, 1_000), &zeros, 1_000, deflate);
    assert!(bomb.len() < 4_000, "{}", bomb.len());
    let large = tiff_file::<Gray8>((3_000, 3_000), &vec![0; 9_000_000], 100, deflate);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"no image at all".to_vec(), "no TIFF file"),
        (good[..good.len() - 1].to_vec(), "no TIFF file"),
        (good[..good.len() / 2].to_vec(), "no TIFF file"),
        (good[..8].to_vec(), "no TIFF file"),
        (with_value(&good, IMAGE_WIDTH, 70_000), "at most 65535"),
        (with_value(&good, IMAGE_LENGTH, u32::MAX), "no TIFF file"),
        (with_value(&good, IMAGE_LENGTH, 0), "no TIFF file"),
        (large, "its pixels have 9000000 octets: at most 8388608"),
        (with_value(&good, IMAGE_LENGTH, 20_000), "no TIFF file"),
        (with_value(&good, ROWS_PER_STRIP, 0), "TIFF"),
        (bomb, "one strip or tile of it has 2000000 octets: at most 1048576"),
        (tiff_file::<CMYK8>((4, 4), &[0; 64], 4, Compression::Uncompressed), "its pixels are CMYK(8)"),
        (tiff_file::<Gray32>((4, 4), &[0; 16], 4, Compression::Uncompressed), "its pixels are Gray(32)"),
    ];
    for (nth, (file, expected)) in cases.into_iter().enumerate() {
        let error = upload(&served.store, &file).unwrap_err();
        let BulkError::GaveUp { text, .. } = &error else { panic!("{nth}: {error:?}") };
        assert!(text.contains(expected), "{nth}: {text}");
    }
    assert_eq!((served.files(), served.service().totals()), (Vec::new(), (0, 0)));
    upload(&served.store, &good).unwrap();
}

#[test]
fn damaged_files_are_images_or_refused_and_the_store_goes_on() {
    let served = Served::new();
    let (pixels, plain) = grey(40, 60);
    let lzw = tiff_file::<Gray8>((40, 60), &pixels, 16, Compression::Lzw);
    let rounds: usize = std::env::var("SPANDREL_IMAGING_MUTATIONS").map_or(150, |rounds| rounds.parse().unwrap());
    let (mut refused, mut accepted) = (0, 0);
    for round in 0..rounds {
        let mut file = if round % 2 == 0 { plain.clone() } else { lzw.clone() };
        let directory = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        for _ in 0..fastrand::usize(1..4) {
            // Mostly in the directory, behind the pixels.
            let range = if fastrand::u8(..4) == 0 { 0..file.len() } else { directory..file.len() };
            let at = fastrand::usize(range);
            file[at] = if fastrand::bool() { fastrand::u8(..) } else { file[at] ^ (1 << fastrand::u8(..8)) };
        }
        match upload(&served.store, &file) {
            Ok(image) => {
                let whole = served.store.describe(image).unwrap().zoom[0];
                served.pixels(image, 0, region(0, 0, whole.columns, whole.rows));
                served.store.remove(image).unwrap();
                accepted += 1;
            }
            Err(BulkError::GaveUp { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0 && accepted > 0, "{refused} {accepted}");
    assert_eq!((served.files(), served.service().totals()), (Vec::new(), (0, 0)));
}

#[test]
fn uploads_of_another_length_and_beyond_the_limits_are_refused() {
    let served = Served::with(|options| {
        options.limits.file = 50_000;
        options.limits.octets = 150_000;
        options.limits.images = 2;
        options.bulk.offers = 4;
    });
    let (_, file) = grey(50, 50);
    for length in [file.len() - 1, file.len() + 1] {
        let (_, offer) = served.store.upload("tests", &elements(&[]), length as u64).unwrap();
        let error = BulkClient::default().send(&offer, &file).unwrap_err();
        assert!(error.to_string().contains("announced"), "{error}");
    }
    for length in [0, 50_001, u64::MAX] {
        match served.store.upload("tests", &elements(&[]), length).unwrap_err() {
            UploadError::Refused(Refused { refused_part: RefusedPart::BadLength, .. }) => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!((served.files(), served.service().totals()), (Vec::new(), (0, 0)));
    // One image fits, with its tile of 64 KiB.
    upload(&served.store, &file).unwrap();
    upload(&served.store, &file).unwrap();
    let full = served.store.upload("tests", &elements(&[]), 10).unwrap_err();
    assert!(format!("{full:?}").contains("IMP_LIMIT"), "{full:?}");
    let octets = served.service().totals().1;
    assert!(octets <= 150_000, "{octets}");
    let last = served.store.find("tests", &elements(&[]), 0, 10).unwrap().images[1];
    served.store.remove(last).unwrap();
    let (_, larger) = grey(200, 200);
    let error = upload(&served.store, &larger).unwrap_err();
    assert!(error.to_string().contains("room for 150000 octets"), "{error}");
    assert_eq!(served.files().len(), 2);
}

/// A client that has begun uploads and sends nothing keeps others from none.
#[test]
fn the_uploads_of_one_client_are_bounded() {
    let served = Served::with(|options| options.limits.uploads_of_client = 1);
    let (_, file) = grey(40, 30);
    let (_, begun) = served.store.upload("tests", &elements(&[]), file.len() as u64).unwrap();
    let control = begun.control.unwrap();
    control.write(0, &file[..1].to_vec().try_into().unwrap()).unwrap();
    let error = upload(&served.store, &file).unwrap_err();
    let BulkError::GaveUp { text, .. } = &error else { panic!("{error:?}") };
    assert!(text.contains("this client has 1 uploads already"), "{text}");
    control.cancel("it is not needed").unwrap();
    upload(&served.store, &file).unwrap();
    // Their ends are counted as well.
    upload(&served.store, &file).unwrap();
}

#[test]
fn files_that_were_cut_removed_or_replaced_are_not_sent() {
    let served = Served::new();
    let (pixels, file) = grey(300, 200);
    let image = upload(&served.store, &file).unwrap();
    let folder = served.folder.path().join(spandrel_imaging::IMAGE_FOLDER);
    let [original, tiles] = ["tiff", "tiles"].map(|ending| folder.join(format!("{image}.{ending}")));
    let saved = fs::read(&tiles).unwrap();
    let view = || served.store.view(image, 0, &region(0, 0, 300, 200));
    let require_damage = || {
        match served.store.download(image) {
            Err(DownloadError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::PersistStore),
            other => panic!("{other:?}"),
        }
        match view() {
            Err(ViewError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::PersistStore),
            other => panic!("{other:?}"),
        }
    };
    for path in [&original, &tiles] {
        fs::File::options().write(true).open(path).unwrap().set_len(100).unwrap();
    }
    require_damage();
    for path in [&original, &tiles] {
        fs::remove_file(path).unwrap();
    }
    require_damage();
    for path in [&original, &tiles] {
        fs::create_dir(path).unwrap();
    }
    require_damage();
    for path in [&original, &tiles] {
        fs::remove_dir(path).unwrap();
    }
    // Other octets of the same length are found by the receiver.
    let mut changed = file.clone();
    changed[100] ^= 1;
    fs::write(&original, changed).unwrap();
    fs::write(&tiles, saved).unwrap();
    let offer = served.store.download(image).unwrap();
    let error = BulkClient::default().receive(&offer, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, BulkError::Checksum { .. }), "{error:?}");
    fs::write(&original, &file).unwrap();
    assert!(receive(&served.store.download(image).unwrap()) == file && receive(&view().unwrap()) == pixels);
    served.store.remove(image).unwrap();
    assert!(matches!(served.store.download(image), Err(DownloadError::NoSuchImage(_))));
}

#[test]
fn an_examination_that_takes_too_long_ends_at_its_limit() {
    let served = Served::with(|options| options.limits.examination = Duration::ZERO);
    let error = upload(&served.store, &grey(300, 300).1).unwrap_err();
    assert!(error.to_string().contains("takes longer") || error.to_string().contains("at this time"), "{error}");
    assert_eq!((served.files(), served.service().totals()), (Vec::new(), (0, 0)));
}

#[test]
fn invalid_names_elements_and_regions_are_refused() {
    let served = Served::new();
    for collection in ["", "/", "a/", "/a", "a//b", "..", "a/../b", "a b", "ä", &"a".repeat(257)] {
        match served.store.upload(collection, &elements(&[]), 10).unwrap_err() {
            UploadError::Refused(Refused { refused_part: RefusedPart::BadCollection, .. }) => {}
            other => panic!("{collection}: {other}"),
        }
        assert!(matches!(served.store.find(collection, &elements(&[]), 0, 1), Err(FindError::Refused(_))));
    }
    let long = "v".repeat(257);
    let many = [("Modality", "CT"); 9];
    let wrong: [&[(&str, &str)]; 5] =
        [&[("", "x")], &[("Patient ID", "x")], &[("Modality", &long)], &[("A", "1"), ("A", "2")], &many];
    for about in wrong {
        match served.store.upload("tests", &elements(about), 10).unwrap_err() {
            UploadError::Refused(Refused { refused_part: RefusedPart::BadElements, .. }) => {}
            other => panic!("{about:?}: {other}"),
        }
    }
    let criteria: DataElements = elements(&many);
    assert!(matches!(served.store.find("tests", &criteria, 0, 1), Err(FindError::Refused(_))));

    let image = upload(&served.store, &grey(300, 200).1).unwrap();
    let wrong: [(u16, Region); 8] = [
        (0, region(0, 0, 0, 1)),
        (0, region(0, 0, 1, 0)),
        (0, region(0, 0, 301, 1)),
        (0, region(300, 0, 1, 1)),
        (0, region(1, 0, u32::MAX, 1)),
        (0, region(0, u32::MAX, 1, 1)),
        (1, region(0, 0, 151, 100)),
        (2, region(0, 0, 1, 1)),
    ];
    for (level, area) in wrong {
        match served.store.view(image, level, &area).unwrap_err() {
            ViewError::Refused(Refused { refused_part: RefusedPart::BadRegion, .. }) => {}
            other => panic!("{area:?}: {other}"),
        }
    }
    served.pixels(image, 1, region(149, 99, 1, 1));
}
