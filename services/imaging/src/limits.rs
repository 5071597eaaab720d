//! Bounds of an image store.

use std::time::Duration;

/// The most that an image store holds, accepts and does at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of images (default 100,000). More is IMP_LIMIT.
    pub images: usize,
    /// The number of images that one client uploads, known by its certificate or its address (default 50,000).
    pub images_of_client: usize,
    /// The octets of all files and their zoom levels (default 1 TiB).
    pub octets: u64,
    /// The octets of one file (default 1 GiB).
    pub file: u64,
    /// The columns and the rows of an image, each (default 65,535).
    pub side: u32,
    /// The octets of an image's pixels (default 2 GiB). A compressed file may have far fewer.
    pub pixels: u64,
    /// The octets of one strip or tile of a file, as they are in memory while the file is examined (default 64 MiB).
    pub strip: usize,
    /// The octets of one region (default 256 MiB).
    pub region: u64,
    /// The uploads at a time that have begun (default 64).
    pub uploads: usize,
    /// Those of one client, known by its certificate or its address (default 16): one that sends an octet now and then keeps
    /// others from no upload.
    pub uploads_of_client: usize,
    /// The files that are examined at a time (default 2).
    pub examinations: usize,
    /// The time for examining a file and computing its zoom levels (default 25 s). The uploader waits for the result, with
    /// a limit of its own that is 30 s by default.
    pub examination: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            images: 100_000,
            images_of_client: 50_000,
            octets: 1 << 40,
            file: 1 << 30,
            side: 65_535,
            pixels: 2 << 30,
            strip: 64 << 20,
            region: 256 << 20,
            uploads: 64,
            uploads_of_client: 16,
            examinations: 2,
            examination: Duration::from_secs(25),
        }
    }
}
