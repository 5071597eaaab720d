//! An image store on an ORB of its own, its reference as another ORB has it, and TIFF files.

use std::io::Cursor;
use std::path::Path;

use spandrel::bulk::bulk::Offer;
use spandrel::bulk::{BulkClient, BulkError};
use spandrel::{Endpoint, Orb};
use spandrel_imaging::imaging::{DataElement, DataElements, Region, Store};
use spandrel_imaging::{ImagingOptions, ImagingService};
use tempfile::TempDir;
use tiff::encoder::colortype::ColorType;
use tiff::encoder::{Compression, TiffEncoder, TiffValue};

/// A running store in a folder of its own, and its reference as a client has it.
pub(crate) struct Served {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
    client: Orb,
    pub(crate) service: Option<ImagingService>,
    orb: Orb,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A store with changed options.
    pub(crate) fn with(change: impl FnOnce(&mut ImagingOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ImagingOptions::new(folder.path());
        change(&mut options);
        let [orb, client] = [0; 2].map(|_| Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap());
        let service = ImagingService::start(&orb, options).unwrap();
        let store = client.string_to_object(&service.store().to_string()).unwrap().narrow().unwrap();
        Self { store, folder, client, service: Some(service), orb }
    }

    pub(crate) fn service(&self) -> &ImagingService {
        self.service.as_ref().unwrap()
    }

    /// The names of the files of images.
    pub(crate) fn files(&self) -> Vec<String> {
        files(&self.folder.path().join(spandrel_imaging::IMAGE_FOLDER))
    }

    /// The pixels of a region.
    pub(crate) fn pixels(&self, image: u64, zoom_level: u16, area: Region) -> Vec<u8> {
        receive(&self.store.view(image, zoom_level, &area).unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop().unwrap();
        }
        self.client.shutdown().unwrap();
        self.orb.shutdown().unwrap();
    }
}

/// The names of the files in a folder, in order.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// All octets of an offer.
pub(crate) fn receive(offer: &Offer) -> Vec<u8> {
    let mut octets = Vec::new();
    BulkClient::default().receive(offer, &mut octets).unwrap();
    octets
}

/// Uploads a file to the collection `tests`.
pub(crate) fn upload(store: &Store, file: &[u8]) -> Result<u64, BulkError> {
    upload_to(store, "tests", &[], file)
}

pub(crate) fn upload_to(
    store: &Store,
    collection: &str,
    about: &[(&str, &str)],
    file: &[u8],
) -> Result<u64, BulkError> {
    let (image, offer) = store.upload(collection, &elements(about), file.len() as u64).unwrap();
    BulkClient::default().send(&offer, &file.to_vec())?;
    Ok(image)
}

pub(crate) fn elements(about: &[(&str, &str)]) -> DataElements {
    let element = |(keyword, value): &(&str, &str)| DataElement { keyword: (*keyword).into(), value: (*value).into() };
    about.iter().map(element).collect::<Vec<_>>().try_into().unwrap()
}

/// A TIFF file of these samples, with this many rows in each strip.
pub(crate) fn tiff_file<C: ColorType>(
    (columns, rows): (u32, u32),
    samples: &[C::Inner],
    rows_per_strip: u32,
    compression: Compression,
) -> Vec<u8>
where
    [C::Inner]: TiffValue,
{
    let mut file = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap().with_compression(compression);
    let mut image = encoder.new_image::<C>(columns, rows).unwrap();
    image.rows_per_strip(rows_per_strip).unwrap();
    image.write_data(samples).unwrap();
    file.into_inner()
}

/// A grey image of 8 bits with different pixels, and its file.
pub(crate) fn grey(columns: u32, rows: u32) -> (Vec<u8>, Vec<u8>) {
    let pixels = spandrel_test_support::pattern((columns * rows) as usize);
    let file = tiff_file::<tiff::encoder::colortype::Gray8>((columns, rows), &pixels, 16, Compression::Uncompressed);
    (pixels, file)
}

pub(crate) fn region(column: u32, row: u32, columns: u32, rows: u32) -> Region {
    Region { column, row, columns, rows }
}
