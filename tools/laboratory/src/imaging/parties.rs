//! The processes of the experiment with images: the server, and the clients.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Cursor, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use spandrel::bulk::{BulkClient, Sink};
use spandrel::{CompletionStatus, Endpoint, Orb, Poa, SystemException};
use spandrel_imaging::imaging::{DataElements, Store};
use spandrel_imaging::{IMAGE_FOLDER, ImagingOptions, ImagingService, Limits};
use spandrel_lab::plain_files;
use tiff::encoder::{TiffEncoder, colortype::Gray8};

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    ::spandrel::include_idl!("pixels");
}

use self::generated::pixels::{Images, ImagesServant, Octets};

/// The longest upload of an image, with its zoom levels, also by a program that is not optimized.
const UPLOAD: Duration = Duration::from_secs(100);

/// The way of an image's octets.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub(crate) enum Mechanism {
    /// As `sequence<octet>` in a reply.
    Calls,
    /// Plain sockets and `sendfile`.
    Plain,
    /// A call to the image store, and a bulk stream.
    Bulk,
}

impl Mechanism {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Calls, Self::Bulk];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Plain => "plain",
            Self::Bulk => "bulk",
        }
    }
}

/// The images of a server, and where each mechanism gets them.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ServedImages {
    calls: String,
    plain: String,
    bulk: String,
    /// The numbers of the images by their megabytes.
    pub(crate) numbers: BTreeMap<u32, u64>,
}

impl ServedImages {
    pub(crate) fn target(&self, mechanism: Mechanism) -> &str {
        match mechanism {
            Mechanism::Calls => &self.calls,
            Mechanism::Plain => &self.plain,
            Mechanism::Bulk => &self.bulk,
        }
    }
}

/// Serve images of these sizes by all mechanisms until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// The data folder of the image store
    folder: PathBuf,
    /// The address at which it listens
    ip: IpAddr,
    /// The megabytes of the images
    #[arg(value_delimiter = ',')]
    sizes: Vec<u32>,
}

/// The files of images in replies.
struct Replies(BTreeMap<u64, PathBuf>);

impl ImagesServant for Replies {
    fn fetch(&self, image: u64) -> Result<Octets, SystemException> {
        let octets = self.0.get(&image).and_then(|path| fs::read(path).ok());
        octets.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))
    }
}

impl ServerArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = Orb::builder().listen(Endpoint::new(self.ip.to_string(), 0)).build()?;
        let tcp = Some(SocketAddr::new(self.ip, 0).into());
        let options = ImagingOptions::new(&self.folder);
        let limits = Limits { examination: UPLOAD, ..options.limits };
        let service = ImagingService::start(&orb, ImagingOptions { tcp, limits, ..options })?;
        let bulk = service.store().to_string();
        let numbers = store_images(&bulk, &self.sizes)?;
        let path = |image: &u64| self.folder.join(IMAGE_FOLDER).join(format!("{image}.tiff"));
        let files: BTreeMap<u64, PathBuf> = numbers.values().map(|image| (*image, path(image))).collect();
        let plain = plain_files::serve(self.ip, files.clone())?.to_string();
        let calls: Images = Poa::root(&orb)?.serve(Replies(files))?;
        let calls = calls.to_string();
        let images = ServedImages { calls, plain, bulk, numbers };
        say(&serde_json::to_string(&images)?)?;
        io::copy(&mut io::stdin().lock(), &mut io::sink()).context("cannot listen to the parent")?;
        service.stop()?;
        orb.shutdown()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The numbers of images of these sizes. Those that the store has not are uploaded.
fn store_images(store: &str, sizes: &[u32]) -> anyhow::Result<BTreeMap<u32, u64>> {
    let client = Orb::builder().build()?;
    let store: Store = client.string_to_object(store)?.narrow()?;
    let mut numbers = BTreeMap::new();
    for size in sizes {
        let collection = format!("megabytes/{size}");
        let present = store.find(&collection, &DataElements::default(), 0, 1)?;
        let image = match present.images.first() {
            Some(image) => *image,
            None => {
                let file = grey_image(*size)?;
                let (image, destination) = store.upload(&collection, &DataElements::default(), file.len() as u64)?;
                BulkClient::default().idle_limit(UPLOAD).send(&destination, &file)?;
                image
            }
        };
        numbers.insert(*size, image);
    }
    client.shutdown()?;
    Ok(numbers)
}

/// A file of a grey image with this many megabytes of pixels, which differ.
fn grey_image(megabytes: u32) -> anyhow::Result<Vec<u8>> {
    let (columns, rows) = (1_000, megabytes * 1_000);
    let pixels: Vec<u8> = (0..columns * rows).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut file = Cursor::new(Vec::new());
    TiffEncoder::new(&mut file)?.write_image::<Gray8>(columns, rows, &pixels)?;
    Ok(file.into_inner())
}

/// Receive an image several times, by several clients at once.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    mechanism: Mechanism,
    /// The reference of the object, or the address
    target: String,
    /// The number of the image
    image: u64,
    /// The clients at once
    clients: usize,
    /// The transfers of each client
    transfers: u32,
}

/// The transfers of all clients.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ClientOutcome {
    pub(crate) octets: u64,
    pub(crate) seconds: f64,
}

/// Counts octets, and keeps none.
struct Counted(u64);

impl Sink for Counted {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0 += octets.len() as u64;
        Ok(())
    }
}

/// A connected client: each call receives the image once, and returns its octets.
type Receive = Box<dyn Fn() -> anyhow::Result<u64> + Send>;

impl ClientArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let clients: Vec<Receive> = (0..self.clients).map(|_| self.connect()).collect::<Result<_, _>>()?;
        clients.iter().try_for_each(|receive| receive().map(drop))?; // connections and caches
        say("ready")?;
        io::stdin().read_line(&mut String::new()).context("cannot listen to the parent")?;
        let barrier = Barrier::new(self.clients + 1);
        let (octets, seconds) = thread::scope(|scope| {
            let run = |receive: Receive| {
                let barrier = &barrier;
                scope.spawn(move || -> anyhow::Result<u64> {
                    barrier.wait();
                    (0..self.transfers).map(|_| receive()).sum()
                })
            };
            let threads: Vec<_> = clients.into_iter().map(run).collect();
            barrier.wait();
            let start = Instant::now();
            let join = |thread: thread::ScopedJoinHandle<'_, anyhow::Result<u64>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let octets: anyhow::Result<u64> = threads.into_iter().map(join).sum();
            octets.map(|octets| (octets, start.elapsed().as_secs_f64()))
        })?;
        say(&serde_json::to_string(&ClientOutcome { octets, seconds })?)?;
        io::copy(&mut io::stdin().lock(), &mut io::sink()).context("cannot listen to the parent")?;
        Ok(ExitCode::SUCCESS)
    }

    fn connect(&self) -> anyhow::Result<Receive> {
        let image = self.image;
        if self.mechanism == Mechanism::Plain {
            let addr: SocketAddr = self.target.parse()?;
            return Ok(Box::new(move || Ok(plain_files::receive(&addr, image)?)));
        }
        let object = Orb::builder().build()?.string_to_object(&self.target)?;
        if self.mechanism == Mechanism::Calls {
            let images: Images = object.narrow()?;
            return Ok(Box::new(move || Ok(images.fetch(image)?.len() as u64)));
        }
        let store: Store = object.narrow()?;
        let bulk = BulkClient::default().calls(false);
        Ok(Box::new(move || {
            let mut octets = Counted(0);
            bulk.receive(&store.download(image)?, &mut octets)?;
            Ok(octets.0)
        }))
    }
}

/// Writes a line to the parent.
fn say(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot speak to the parent")
}
