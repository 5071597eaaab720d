//! The files of a store: one for each image as it was uploaded, and one for its tiles.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use spandrel_store::{private_file, synchronize_folder};

/// The name of the database's file in the data folder.
pub const STORE_FILE: &str = "imaging.redb";

/// The folder of the images' files, below the data folder.
pub const IMAGE_FOLDER: &str = "images";

/// The ending of a file that is not complete.
const PART: &str = "part";

/// The folder of the files.
#[derive(Clone, Debug)]
pub(crate) struct ImageFiles(PathBuf);

/// The file of an image.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FileKind {
    /// As it was uploaded.
    Original,
    /// The tiles of its zoom levels.
    Tiles,
}

impl FileKind {
    const ALL: [Self; 2] = [Self::Original, Self::Tiles];

    fn ending(self) -> &'static str {
        match self {
            Self::Original => "tiff",
            Self::Tiles => "tiles",
        }
    }
}

impl ImageFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Creates the folder, durably.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        synchronize_folder(&self.0)
    }

    pub(crate) fn path(&self, image: u64, kind: FileKind) -> PathBuf {
        self.0.join(format!("{image}.{}", kind.ending()))
    }

    /// The path of a file until it is complete.
    pub(crate) fn part_path(&self, image: u64, kind: FileKind) -> PathBuf {
        self.0.join(format!("{image}.{}.{PART}", kind.ending()))
    }

    /// Creates a file that is not complete. Only the user of the process can read it.
    pub(crate) fn create_part(&self, image: u64, kind: FileKind) -> io::Result<File> {
        private_file().read(true).write(true).create_new(true).open(self.part_path(image, kind))
    }

    /// Gives the complete files of an image their names, durably. Their contents are on the disk already.
    pub(crate) fn complete(&self, image: u64) -> io::Result<()> {
        for kind in FileKind::ALL {
            fs::rename(self.part_path(image, kind), self.path(image, kind))?;
        }
        synchronize_folder(&self.path(image, FileKind::Original))
    }

    /// Removes all files of an image that are there.
    pub(crate) fn remove(&self, image: u64) {
        for kind in FileKind::ALL {
            for path in [self.part_path(image, kind), self.path(image, kind)] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        tracing::warn!(%error, "{} could not be removed", path.display());
                    }
                    _ => {}
                }
            }
        }
    }

    /// The images that have files, with each file's path. Files with other names are not the store's.
    pub(crate) fn list(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            files.extend(image_number(&path).map(|image| (image, path)));
        }
        Ok(files)
    }
}

/// The number of the image to which a file belongs.
fn image_number(path: &Path) -> Option<u64> {
    let (number, ending) = path.file_name()?.to_str()?.split_once('.')?;
    let ending = ending.strip_suffix(PART).and_then(|ending| ending.strip_suffix('.')).unwrap_or(ending);
    let is_ours = FileKind::ALL.iter().any(|kind| kind.ending() == ending);
    number.parse().ok().filter(|image: &u64| is_ours && image.to_string() == number)
}
