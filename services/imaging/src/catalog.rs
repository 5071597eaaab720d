//! The images of a store in memory and on disk, and the room that uploads take.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use spandrel::SystemException;
use spandrel::net::sync::{Arc, Mutex};
use spandrel_daemon::require_at_most;
use spandrel_store::{Backup, Storage, StoreFailure, StoreFileError};

use crate::files::ImageFiles;
use crate::limits::Limits;
use crate::store::{ImageRecord, Store, StoreError, require_files};

/// All images of a store.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) files: ImageFiles,
    pub(crate) limits: Limits,
    store: Mutex<Store>,
    state: Mutex<CatalogState>,
}

#[derive(Debug, Default)]
struct CatalogState {
    images: BTreeMap<u64, Arc<ImageRecord>>,
    /// The images by the client that uploaded them.
    by_owner: HashMap<String, usize>,
    /// The octets of the files of all images, and of uploads.
    octets: u64,
    /// The uploads that have begun.
    uploads: usize,
    /// Those of each client.
    uploads_by_owner: HashMap<String, usize>,
}

impl Catalog {
    /// Opens the store, and removes what ended uploads have left. Files that are newer than the database are an error:
    /// it is an older copy, and the images of those files are not to be lost.
    pub(crate) fn open(storage: Storage, folder: PathBuf, limits: Limits) -> Result<(Self, u64), StoreError> {
        let files = ImageFiles::new(folder.clone());
        let failed = |error| StoreError::Folder(folder.clone(), error);
        files.create_folder().map_err(failed)?;
        let (store, records, next) = Store::open(storage)?;
        let mut state = CatalogState::default();
        for record in records {
            require_files(&files, &record)?;
            state.add(record);
        }
        for (image, file) in files.list().map_err(failed)? {
            if image >= next {
                let reason = format!(
                    "it is newer than the store, whose next image is {next}: use the newer store, or move the file away"
                );
                return Err(StoreError::Image { file, reason });
            }
            if !state.images.contains_key(&image) {
                tracing::info!("{} is removed: its upload has not ended, or the image was removed", file.display());
                std::fs::remove_file(&file).map_err(failed)?;
            } else if file.extension().is_some_and(|ending| ending == "part") {
                std::fs::remove_file(&file).map_err(failed)?;
            }
        }
        let (store, state) = (Mutex::new(store), Mutex::new(state));
        Ok((Self { files, limits, store, state }, next))
    }

    pub(crate) fn image(&self, image: u64) -> Option<Arc<ImageRecord>> {
        self.state.lock().images.get(&image).cloned()
    }

    /// The images with numbers above this one, at most this many.
    pub(crate) fn images_after(&self, after: u64, count: usize) -> Vec<Arc<ImageRecord>> {
        let Some(first) = after.checked_add(1) else { return Vec::new() };
        self.state.lock().images.range(first..).take(count).map(|(_, record)| Arc::clone(record)).collect()
    }

    /// The number of images, and the octets of their files.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.images.len(), state.octets)
    }

    /// Requires room for one more image of a client.
    pub(crate) fn require_room(&self, owner: &str) -> Result<(), SystemException> {
        let state = self.state.lock();
        require_at_most(state.images.len() + 1, self.limits.images, "images")?;
        let of_owner = state.by_owner.get(owner).copied().unwrap_or(0);
        require_at_most(of_owner + 1, self.limits.images_of_client, "images of one client")
    }

    /// Records that all numbers below this one may be used.
    pub(crate) fn reserve(&self, next: u64) -> Result<(), StoreFailure> {
        self.store.lock().reserve(next)
    }

    /// Records an image whose files are complete, and whose octets are claimed.
    pub(crate) fn add(&self, record: ImageRecord) -> Result<(), StoreFailure> {
        self.store.lock().add(&record)?;
        let mut state = self.state.lock();
        state.octets -= record.octets(); // `add` counts them
        state.add(record);
        Ok(())
    }

    /// Removes an image; false if it was not there.
    pub(crate) fn remove(&self, image: u64) -> Result<bool, StoreFailure> {
        let mut store = self.store.lock();
        if self.image(image).is_none() {
            return Ok(false);
        }
        store.remove(image)?;
        self.files.remove(image);
        self.state.lock().remove(image);
        Ok(true)
    }

    /// Begins a copy of the database.
    pub(crate) fn begin_backup(&self) -> Result<Backup, StoreFileError> {
        self.store.lock().begin_backup()
    }

    /// Claims a place among the uploads for a client.
    ///
    /// # Errors
    /// The reason, if there are too many.
    pub(crate) fn claim_upload(&self, owner: &str) -> Result<(), String> {
        let Limits { uploads, uploads_of_client, .. } = self.limits;
        let mut state = self.state.lock();
        if state.uploads >= uploads {
            return Err(format!("there are {uploads} uploads already: wait for the end of one"));
        }
        let of_owner = state.uploads_by_owner.entry(owner.to_owned()).or_default();
        if *of_owner >= uploads_of_client {
            return Err(format!("this client has {uploads_of_client} uploads already: wait for the end of one"));
        }
        *of_owner += 1;
        state.uploads += 1;
        Ok(())
    }

    pub(crate) fn release_upload(&self, owner: &str) {
        let mut state = self.state.lock();
        state.uploads -= 1;
        if let Some(count) = state.uploads_by_owner.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                state.uploads_by_owner.remove(owner);
            }
        }
    }

    /// Claims room for octets; false if it would exceed the limit.
    pub(crate) fn claim(&self, octets: u64) -> bool {
        let mut state = self.state.lock();
        let total = state.octets.saturating_add(octets);
        let is_free = total <= self.limits.octets;
        if is_free {
            state.octets = total;
        }
        is_free
    }

    pub(crate) fn release(&self, octets: u64) {
        self.state.lock().octets -= octets;
    }
}

impl CatalogState {
    fn add(&mut self, record: ImageRecord) {
        self.octets += record.octets();
        *self.by_owner.entry(record.owner.clone()).or_default() += 1;
        self.images.insert(record.description.image, Arc::new(record));
    }

    fn remove(&mut self, image: u64) {
        let Some(record) = self.images.remove(&image) else { return };
        self.octets -= record.octets();
        if let Some(count) = self.by_owner.get_mut(&record.owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(&record.owner);
            }
        }
    }
}
