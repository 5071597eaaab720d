//! A store of medical images: calls find, describe and remove them, bulk streams carry their pixels (paper 000, section 6).
//!
//! [`ImagingService::start`] adds a store to an ORB; the executable `spandrel-imaging` does so in a process of its own. Its
//! interface is [`imaging::Store`], of `idl/Imaging.idl`.
//!
//! # Design
//! - An image is a TIFF file, kept as it was uploaded, and a file of tiles of all zoom levels, each of which has half the
//!   columns and rows of the level before it. Tiles are made at the end of the upload, strip by strip, in bounded memory.
//! - A record in the database is what makes the files an image. An upload writes temporary files, synchronizes them,
//!   renames them, and writes the record at last; then the uploader is told of success. After the end of the
//!   process at any instant, the next start removes files without a record: an image is whole or absent.
//! - A downloaded file goes by `sendfile`, or as an open descriptor to a client of the same user, and no octet of it
//!   comes to user space. A region is read tile by tile.
//! - Each image belongs to a collection, such as `radiology/ct`, which is the path of policies: a rule says who may
//!   `find`, `describe`, `upload`, `download`, `view` or `remove` below it.
//! - Files are hostile: sizes, strips, samples, and the time of the examination are bounded ([`Limits`]), and a
//!   file of another form is refused with the reason, which ends its transfer.
//!
//! Absent: other formats than TIFF (with strips or tiles; uncompressed, PackBits, LZW or deflate; grey, RGB or RGBA of 8 or
//! 16 bits), further pages of a file, and changes of an image.
#![forbid(unsafe_code)]

mod catalog;
mod examination;
mod files;
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    ::spandrel::include_idl!("Imaging");
}
mod limits;
mod pyramid;
mod servant;
mod service;
mod store;
mod upload;

pub use files::{IMAGE_FOLDER, STORE_FILE};
pub use generated::imaging;
pub use limits::Limits;
pub use service::{ADAPTER, ImagingError, ImagingOptions, ImagingService, STORE_KEY, STREAM_ADAPTER};
pub use store::{StoreError, check_store};
