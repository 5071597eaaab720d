//! The records of images on disk, and the verification of their files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFailure, StoreFile, StoreFileError, copy_table,
};

use crate::files::{FileKind, IMAGE_FOLDER, ImageFiles, STORE_FILE};
use crate::generated::imaging::Description;
use crate::pyramid::{PixelFormat, levels, octets, sizes};

const IMAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("images");
/// `next` is the number of the next image. Numbers are not used again, also those of uploads that failed.
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The memory for pages, in octets. All records are read once, at the start.
const CACHE: usize = 16 << 20;

static LAYOUT: Layout = Layout { service: Service::Imaging, version: 1, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(IMAGES)?;
    transaction.open_table(SETTINGS)?.insert("next", 1)?;
    Ok(())
}

fn convert(_: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    Err(OpenCause::NoStore("it has no header".to_owned()))
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(IMAGES, reading, copy)?;
    copy_table(SETTINGS, reading, copy)
}

/// The form of a record: the same on each machine, with all characters.
fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// A failure to open the database of images, or a difference between it and the files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be opened, is damaged, or is that of another service.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record of the database cannot be read.
    #[error(transparent)]
    File(#[from] StoreFileError),
    /// The folder of the images cannot be read or written.
    #[error("cannot use the folder of the images {}", .0.display())]
    Folder(std::path::PathBuf, #[source] std::io::Error),
    /// The file of an image is missing or damaged, or is newer than the database.
    #[error("{}: {reason}", .file.display())]
    Image {
        /// The path of the file.
        file: std::path::PathBuf,
        /// The damage, and the remedy.
        reason: String,
    },
}

/// The record of an image.
#[derive(Clone, Debug)]
pub(crate) struct ImageRecord {
    pub(crate) description: Description,
    /// The client that uploaded it.
    pub(crate) owner: String,
}

impl ImageRecord {
    pub(crate) fn format(&self) -> PixelFormat {
        PixelFormat { samples: self.description.samples_per_pixel, bits: self.description.bits_allocated }
    }

    /// The octets of its files.
    pub(crate) fn octets(&self) -> u64 {
        self.description.length + self.tile_octets()
    }

    /// The octets of one of its files.
    pub(crate) fn octets_of(&self, kind: FileKind) -> u64 {
        match kind {
            FileKind::Original => self.description.length,
            FileKind::Tiles => self.tile_octets(),
        }
    }

    fn tile_octets(&self) -> u64 {
        let Some(whole) = self.description.zoom.first() else { return 0 };
        octets(&levels(whole.columns, whole.rows, self.format()))
    }

    /// Whether the sizes of the levels follow from that of the image, and the pixels have a known form.
    fn is_consistent(&self) -> bool {
        let Some(whole) = self.description.zoom.first() else { return false };
        matches!(self.format(), PixelFormat { samples: 1 | 3 | 4, bits: 8 | 16 })
            && whole.columns > 0
            && whole.rows > 0
            && sizes(&levels(whole.columns, whole.rows, self.format()))[..] == self.description.zoom[..]
    }
}

/// The database of a store.
#[derive(Debug)]
pub(crate) struct Store(StoreFile);

impl Store {
    /// Opens the file, or creates it, and reads all records. Returns the number of the next image as well.
    pub(crate) fn open(storage: Storage) -> Result<(Self, Vec<ImageRecord>, u64), StoreError> {
        let mut file = StoreFile::open(storage, &LAYOUT, CACHE)?;
        let (records, next) = file.read(|reading| {
            let mut records = Vec::new();
            for record in reading.open_table(IMAGES)?.iter()? {
                let (image, octets) = record?;
                records.push((image.value(), octets.value().to_vec()));
            }
            let next = reading.open_table(SETTINGS)?.get("next")?.map_or(0, |next| next.value());
            Ok((records, next))
        })?;
        let damaged = |text: String| StoreError::from(file.storage().error(OpenCause::Contents(text)));
        let mut images = Vec::new();
        for (image, octets) in records {
            let fields: Result<(Description, String), _> = from_octets(&octets, &form());
            let (description, owner) = fields.map_err(|error| damaged(format!("image {image}: {error}")))?;
            let record = ImageRecord { description, owner };
            if record.description.image != image || image >= next || !record.is_consistent() {
                return Err(damaged(format!("the record of image {image} contradicts itself")));
            }
            images.push(record);
        }
        Ok((Self(file), images, next))
    }

    /// Records that all numbers below this one may have been given to images.
    pub(crate) fn reserve(&mut self, next: u64) -> Result<(), StoreFailure> {
        Ok(self.0.change(|writing| {
            let mut settings = writing.open_table(SETTINGS)?;
            // Uploads do not come here in the order of their numbers.
            let present = settings.get("next")?.map_or(0, |present| present.value());
            settings.insert("next", next.max(present))?;
            Ok(())
        })?)
    }

    /// Records an image, whose files are complete. It exists from then on.
    pub(crate) fn add(&mut self, record: &ImageRecord) -> Result<(), StoreFailure> {
        let fields = (record.description.clone(), record.owner.clone());
        let octets = to_octets(&fields, &form()).map_err(|error| StoreFailure::Unchanged(error.to_string()))?;
        Ok(self.0.change(|writing| {
            writing.open_table(IMAGES)?.insert(record.description.image, &*octets)?;
            Ok(())
        })?)
    }

    /// Removes the record of an image. It does not exist from then on.
    pub(crate) fn remove(&mut self, image: u64) -> Result<(), StoreFailure> {
        Ok(self.0.change(|writing| {
            writing.open_table(IMAGES)?.remove(image)?;
            Ok(())
        })?)
    }

    /// Begins a copy of the database.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        self.0.begin_backup()
    }
}

/// Requires that both files of an image have their lengths.
pub(crate) fn require_files(files: &ImageFiles, record: &ImageRecord) -> Result<(), StoreError> {
    let image = record.description.image;
    for kind in [FileKind::Original, FileKind::Tiles] {
        let expected = record.octets_of(kind);
        let file = files.path(image, kind);
        let damaged = |reason| StoreError::Image { file: file.clone(), reason };
        match std::fs::metadata(&file) {
            Ok(data) if data.is_file() && data.len() == expected => {}
            Ok(data) => return Err(damaged(format!("it has {} octets, and image {image} has {expected}", data.len()))),
            Err(error) => {
                return Err(damaged(format!("the file of image {image} cannot be read ({error}): restore it")));
            }
        }
    }
    Ok(())
}

/// Verifies the store in a data folder, whose service does not run, with the checksums of all uploaded files. No file is
/// written. Returns the number of images, and the octets of their files.
///
/// # Errors
/// A store that cannot be read, is in use, is damaged, or is that of another service or version; files of images that
/// are missing or damaged.
pub fn check_store(data: &Path) -> Result<(usize, u64), StoreError> {
    let (_, images, _) = Store::open(Storage::read_only(data.join(STORE_FILE)))?;
    let files = ImageFiles::new(data.join(IMAGE_FOLDER));
    let mut buffer = vec![0; 1 << 20];
    for record in &images {
        require_files(&files, record)?;
        let file = files.path(record.description.image, FileKind::Original);
        let damaged = |reason: String| StoreError::Image { file: file.clone(), reason };
        let mut reader = File::open(&file).map_err(|error| damaged(error.to_string()))?;
        let mut checksum = crc32fast::Hasher::new();
        loop {
            match reader.read(&mut buffer).map_err(|error| damaged(error.to_string()))? {
                0 => break,
                count => checksum.update(&buffer[..count]),
            }
        }
        let (computed, expected) = (checksum.finalize(), record.description.checksum);
        if computed != expected {
            return Err(damaged(format!(
                "its checksum is {computed:08x}, and that of the upload {expected:08x}: restore it"
            )));
        }
    }
    Ok((images.len(), images.iter().map(ImageRecord::octets).sum()))
}
