//! Serves the images of a folder: `bulk-server FOLDER [-ORB…]`. Prints the reference of the object.

use std::path::PathBuf;

use spandrel::bulk::{BulkServer, FileSink, FileSource, OfferedTo, bulk::Offer};
use spandrel::{CompletionStatus, Orb, Poa, SystemException};

spandrel::include_idl!("gallery");
use gallery::{Images, ImagesServant, NoSuchImage, images::*};

struct Folder {
    path: PathBuf,
    bulk: BulkServer,
}

impl Folder {
    /// The path of an image. Names are plain, so that none leads out of the folder.
    fn image(&self, name: &str) -> Result<PathBuf, NoSuchImage> {
        let is_plain = !name.starts_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if is_plain && !name.is_empty() { Ok(self.path.join(name)) } else { Err(NoSuchImage { name: name.to_owned() }) }
    }
}

impl ImagesServant for Folder {
    fn fetch(&self, name: &str) -> Result<Offer, FetchError> {
        let file = FileSource::open(self.image(name)?).map_err(|_| NoSuchImage { name: name.to_owned() })?;
        let (offer, _transfer) = self.bulk.offer_source(file, &OfferedTo::Caller).map_err(busy)?;
        Ok(offer)
    }

    fn store(&self, name: &str) -> Result<Offer, StoreError> {
        let file = FileSink::create(self.image(name)?).map_err(|_| NoSuchImage { name: name.to_owned() })?;
        let (offer, _transfer) = self.bulk.offer_sink(file, &OfferedTo::Caller).map_err(busy)?;
        Ok(offer)
    }
}

/// There are too many transfers: the client may try again.
fn busy(error: spandrel::bulk::BulkError) -> SystemException {
    eprintln!("{error}");
    SystemException::transient(0, CompletionStatus::No)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("usage: bulk-server FOLDER [-ORB…]")?);
    let orb = Orb::init(args)?;
    let poa = Poa::root(&orb)?;
    let bulk = BulkServer::builder(&poa).tcp("127.0.0.1:0".parse()?);
    // On one machine by a UNIX-domain socket, which passes open files.
    #[cfg(unix)]
    let bulk = bulk.unix(path.join(".bulk"));
    let bulk = bulk.open()?;
    let images: Images = poa.serve(Folder { path, bulk })?;
    println!("{images}");
    Ok(orb.run_until_signal()?)
}
