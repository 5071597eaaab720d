//! The destination of an upload: a file that becomes an image at its end, whole or not at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use spandrel::bulk::Sink;
use spandrel::net::sync::{Arc, Semaphore, Weak};
use spandrel_store::StoreFailure;

use crate::catalog::Catalog;
use crate::examination::{ExaminedFile, RefusedFile};
use crate::files::FileKind;
use crate::generated::imaging::Description;
use crate::pyramid::sizes;
use crate::store::ImageRecord;

/// The octets of an upload, as they arrive.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Gone when the service has ended, however long its last connections last.
    catalog: Weak<Catalog>,
    examinations: Arc<Semaphore>,
    /// The description of the image; its form and checksum are those of the file at the end.
    record: ImageRecord,
    /// `None` before the first octet, and after the end.
    file: Option<File>,
    received: u64,
    checksum: crc32fast::Hasher,
    /// The octets for which room is claimed.
    claimed: u64,
}

impl Upload {
    pub(crate) fn new(catalog: &Arc<Catalog>, examinations: &Arc<Semaphore>, record: ImageRecord) -> Self {
        let (catalog, examinations) = (Arc::downgrade(catalog), Arc::clone(examinations));
        Self { catalog, examinations, record, file: None, received: 0, checksum: Default::default(), claimed: 0 }
    }

    fn image(&self) -> u64 {
        self.record.description.image
    }

    fn catalog(&self) -> io::Result<Arc<Catalog>> {
        self.catalog.upgrade().ok_or_else(|| refused("the store has ended".to_owned()))
    }

    fn claim(&mut self, catalog: &Catalog, octets: u64) -> io::Result<()> {
        if !catalog.claim(octets) {
            let most = catalog.limits.octets;
            return Err(refused(format!("the store has room for {most} octets, which are used: remove images")));
        }
        self.claimed += octets;
        Ok(())
    }

    /// Begins the upload with its first octet.
    fn begin(&mut self) -> io::Result<()> {
        let catalog = self.catalog()?;
        catalog.claim_upload(&self.record.owner).map_err(refused)?;
        let created = catalog.files.create_part(self.image(), FileKind::Original);
        match created {
            Ok(file) => self.file = Some(file),
            Err(error) => {
                catalog.release_upload(&self.record.owner);
                return Err(error);
            }
        }
        self.claim(&catalog, self.record.description.length)
    }

    /// Makes an image of the file.
    fn complete(&mut self) -> io::Result<()> {
        let catalog = self.catalog()?;
        let length = self.record.description.length;
        if self.received != length {
            return Err(refused(format!("{} octets were received, and {length} were announced", self.received)));
        }
        let Some(file) = self.file.as_ref() else { return Err(refused("the file has no octets".to_owned())) };
        file.sync_all()?;
        let (start, limits) = (Instant::now(), catalog.limits);
        let examinations = Arc::clone(&self.examinations);
        let Some(_permit) = examinations.acquire_for(limits.examination) else {
            return Err(refused("too many files are examined at this time: try again".to_owned()));
        };
        let file = File::open(catalog.files.part_path(self.image(), FileKind::Original))?;
        let examined = ExaminedFile::open(file, &limits)?;
        self.claim(&catalog, examined.tile_octets())?;
        let (format, levels) = (examined.format, sizes(&examined.levels));
        let tiles = catalog.files.create_part(self.image(), FileKind::Tiles)?;
        examined.write_tiles(tiles, start)?;
        catalog.files.complete(self.image())?;
        let stored_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let zoom = levels.try_into().map_err(|_| RefusedFile::Content("it has too many zoom levels".to_owned()))?;
        let description = Description {
            samples_per_pixel: format.samples,
            bits_allocated: format.bits,
            zoom,
            checksum: self.checksum.clone().finalize(),
            stored_at,
            ..self.record.description.clone()
        };
        let record = ImageRecord { description, owner: self.record.owner.clone() };
        catalog.require_room(&record.owner).map_err(|error| refused(error.to_string()))?;
        match catalog.add(record) {
            Ok(()) => {}
            Err(StoreFailure::Unchanged(text)) => return Err(io::Error::other(text)),
            Err(StoreFailure::Uncertain(text)) => {
                // The database may have the image, and so its files stay. The next start knows.
                self.end();
                return Err(io::Error::other(text));
            }
        }
        self.end();
        Ok(())
    }

    /// Ends the upload without touching its files. The octets of its image stay claimed.
    fn end(&mut self) {
        self.claimed = 0;
        if self.file.take().is_some()
            && let Ok(catalog) = self.catalog()
        {
            catalog.release_upload(&self.record.owner);
        }
    }

    /// Ends the upload without an image.
    fn discard(&mut self) {
        if self.file.is_some() {
            // Without a store, the next start removes the files.
            if let Ok(catalog) = self.catalog() {
                catalog.files.remove(self.image());
                catalog.release(self.claimed);
            }
            self.end();
        }
    }
}

impl Sink for Upload {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.received == 0 {
            self.begin()?;
        }
        let Some(file) = &mut self.file else { return Err(refused("the upload has ended".to_owned())) };
        self.received += octets.len() as u64;
        if self.received > self.record.description.length {
            return Err(refused("it has more octets than were announced".to_owned()));
        }
        file.write_all(octets)?;
        self.checksum.update(octets);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let completed = self.complete();
        if completed.is_err() {
            self.discard();
        }
        completed
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.discard();
    }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
