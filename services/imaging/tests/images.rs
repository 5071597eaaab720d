//! Images from upload to removal: descriptions, files, regions, zoom levels and queries.

use spandrel::bulk::{BulkClient, Route};
use spandrel_imaging::imaging::Level;
use spandrel_imaging::imaging::store::{DescribeError, DownloadError, RemoveError, ViewError};
use spandrel_test_support::{TEST_TIMEOUT, pattern};
use tiff::encoder::Compression;
use tiff::encoder::colortype::{Gray16, RGB8};

use crate::support::{Served, elements, grey, receive, region, tiff_file, upload, upload_to};

#[test]
fn an_image_is_described_downloaded_as_uploaded_and_removed() {
    let served = Served::new();
    let (_, file) = grey(700, 300);
    let about = [("PatientID", "4711"), ("Modality", "CT")];
    let image = upload_to(&served.store, "radiology/ct", &about, &file).unwrap();
    let description = served.store.describe(image).unwrap();
    assert_eq!((description.image, &*description.collection), (image, "radiology/ct"));
    assert_eq!(description.about, elements(&about));
    assert_eq!((description.samples_per_pixel, description.bits_allocated), (1, 8));
    let level = |columns, rows| Level { columns, rows };
    assert_eq!(description.zoom[..], [level(700, 300), level(350, 150), level(175, 75)]);
    assert_eq!((description.length, description.checksum), (file.len() as u64, crc32fast::hash(&file)));
    assert!(description.stored_at > 1_700_000_000);
    assert_eq!(served.files(), [format!("{image}.tiff"), format!("{image}.tiles")]);

    let mut received = Vec::new();
    let outcome = BulkClient::default().receive(&served.store.download(image).unwrap(), &mut received).unwrap();
    assert!(received == file && outcome.is_verified && outcome.route == Route::Tcp, "{outcome:?}");
    assert!(receive(&served.store.download(image).unwrap()) == file);

    let open = served.store.download(image).unwrap();
    served.store.remove(image).unwrap();
    assert!(receive(&open) == file, "a transfer that was offered goes on");
    assert!(matches!(served.store.describe(image), Err(DescribeError::NoSuchImage(it)) if it.image == image));
    assert!(matches!(served.store.download(image), Err(DownloadError::NoSuchImage(_))));
    assert!(matches!(served.store.view(image, 0, &region(0, 0, 1, 1)), Err(ViewError::NoSuchImage(_))));
    assert!(matches!(served.store.remove(image), Err(RemoveError::NoSuchImage(_))));
    assert_eq!((served.files(), served.service().totals()), (Vec::new(), (0, 0)));
    assert!(upload(&served.store, &file).unwrap() > image, "numbers are not used again");
}

/// The pixels of a region, cut out of the whole image.
fn cut(pixels: &[u8], columns: u32, pixel: u32, [column, row, width, height]: [u32; 4]) -> Vec<u8> {
    let line = |row: u32| {
        let begin = ((row * columns + column) * pixel) as usize;
        &pixels[begin..begin + (width * pixel) as usize]
    };
    (row..row + height).flat_map(|row| line(row).iter().copied()).collect()
}

#[test]
fn regions_are_the_pixels_of_the_file_in_each_form_and_compression() {
    let served = Served::new();
    let (columns, rows) = (613, 517);
    let octets = pattern((columns * rows * 3) as usize);
    let samples: Vec<u16> =
        octets[..(columns * rows * 2) as usize].chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let deflate = Compression::Deflate(tiff::encoder::DeflateLevel::Fast);
    for (rows_per_strip, compression) in
        [(1, Compression::Uncompressed), (7, Compression::Lzw), (300, Compression::Packbits), (517, deflate)]
    {
        let rgb = tiff_file::<RGB8>((columns, rows), &octets, rows_per_strip, compression);
        let grey = tiff_file::<Gray16>((columns, rows), &samples, rows_per_strip, compression);
        for (file, pixel) in [(rgb, 3), (grey, 2)] {
            let pixels = &octets[..(columns * rows * pixel) as usize];
            let image = upload(&served.store, &file).unwrap();
            assert!(served.pixels(image, 0, region(0, 0, columns, rows)) == pixels, "{rows_per_strip} rows");
            for _ in 0..20 {
                let [column, row] = [fastrand::u32(..columns), fastrand::u32(..rows)];
                let [width, height] = [fastrand::u32(1..=columns - column), fastrand::u32(1..=rows - row)];
                let area = [column, row, width, height];
                let received = served.pixels(image, 0, region(column, row, width, height));
                assert!(received == cut(pixels, columns, pixel, area), "{rows_per_strip} rows {area:?}");
            }
            served.store.remove(image).unwrap();
        }
    }
}

/// The next zoom level: each pixel is the mean of four, where an odd edge counts twice.
fn halved(pixels: &[u8], (columns, rows): (u32, u32)) -> (Vec<u8>, (u32, u32)) {
    let size = (columns.div_ceil(2), rows.div_ceil(2));
    let at =
        |column: u32, row: u32| u32::from(pixels[(row.min(rows - 1) * columns + column.min(columns - 1)) as usize]);
    let mean = |x: u32, y: u32| {
        let sum = at(2 * x, 2 * y) + at(2 * x + 1, 2 * y) + at(2 * x, 2 * y + 1) + at(2 * x + 1, 2 * y + 1);
        ((sum + 2) / 4) as u8
    };
    ((0..size.1).flat_map(|y| (0..size.0).map(move |x| mean(x, y))).collect(), size)
}

#[test]
fn each_zoom_level_has_the_means_of_the_level_before_it() {
    let served = Served::new();
    let mut size = (1_031, 777);
    let (mut pixels, file) = grey(size.0, size.1);
    let image = upload(&served.store, &file).unwrap();
    let levels = served.store.describe(image).unwrap().zoom.len() as u16;
    assert_eq!(levels, 4);
    for level in 1..levels {
        (pixels, size) = halved(&pixels, size);
        assert!(served.pixels(image, level, region(0, 0, size.0, size.1)) == pixels, "level {level}");
    }
}

#[test]
fn queries_select_by_collection_and_patterns_and_go_on_where_they_ended() {
    let served = Served::new();
    let (_, file) = grey(3, 3);
    let mut images = Vec::new();
    for number in 0..7 {
        let collection = ["ward/a", "ward/b", "wards"][number % 3];
        let patient = format!("P{number}");
        let about = [("PatientID", &*patient), ("Modality", if number < 4 { "CT" } else { "MR" })];
        images.push(upload_to(&served.store, collection, &about, &file).unwrap());
    }
    let query = |collection: &str, criteria: &[(&str, &str)]| -> Vec<usize> {
        let part = served.store.find(collection, &elements(criteria), 0, 1_000).unwrap();
        assert!(part.is_last);
        part.images.iter().map(|image| images.iter().position(|other| other == image).unwrap()).collect()
    };
    assert_eq!(query("ward", &[]), [0, 1, 3, 4, 6]);
    assert_eq!(query("ward/a", &[]), [0, 3, 6]);
    assert_eq!(query("ward", &[("Modality", "CT")]), [0, 1, 3]);
    assert_eq!(query("ward", &[("Modality", "?T"), ("PatientID", "*3")]), [3]);
    assert_eq!(query("ward", &[("PatientID", "")]), [0, 1, 3, 4, 6]);
    assert_eq!(query("ward", &[("StudyDate", "")]), [0; 0]);
    assert_eq!(query("other", &[]), [0; 0]);
    let (mut after, mut received) = (0, Vec::new());
    loop {
        let part = served.store.find("ward", &elements(&[]), after, 2).unwrap();
        received.extend_from_slice(&part.images);
        after = part.last_examined;
        if part.is_last {
            break;
        }
        assert_eq!(part.images.len(), 2);
    }
    assert_eq!(received, [0, 1, 3, 4, 6].map(|number| images[number]));
}

/// The largest images of paper 000.
#[test]
fn an_image_of_40_megabytes_comes_back_whole_and_as_its_smallest_zoom_level() {
    let served = Served::with(|options| options.limits.examination = TEST_TIMEOUT);
    let (columns, rows) = (8_000, 5_000);
    let (pixels, file) = grey(columns, rows);
    assert!(file.len() > 40_000_000);
    let image = upload(&served.store, &file).unwrap();
    let mut received = Vec::new();
    let outcome = BulkClient::default().receive(&served.store.download(image).unwrap(), &mut received).unwrap();
    assert!(received == file && outcome.is_verified && outcome.octets == file.len() as u64, "{outcome:?}");
    assert!(
        served.pixels(image, 0, region(7_000, 4_990, 1_000, 10)) == cut(&pixels, columns, 1, [7_000, 4_990, 1_000, 10])
    );
    let description = served.store.describe(image).unwrap();
    let last = description.zoom.last().unwrap();
    assert!(last.columns <= 256 && last.rows <= 256, "{last:?}");
    let smallest = served.pixels(image, description.zoom.len() as u16 - 1, region(0, 0, last.columns, last.rows));
    assert_eq!(smallest.len(), (last.columns * last.rows) as usize);
}
