//! The image store on an ORB: its adapter, key, endpoints and options.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use spandrel::authorization::PathCheck;
use spandrel::bulk::{BulkLimits, BulkServer, BulkStatistics};
use spandrel::net::ipc::inet;
use spandrel::net::sync::{Arc, Semaphore};
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::ssliop::Ssliop;
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_store::{Administration, Service, Storage};

use crate::catalog::Catalog;
use crate::files::{IMAGE_FOLDER, STORE_FILE};
use crate::generated::imaging::StoreSkeleton;
use crate::limits::Limits;
use crate::servant::ImageStore;
use crate::store::StoreError;

/// The name of the store's adapter, below the root adapter, by which policies refer to it. The adapter of its
/// stream ends is below it.
pub const ADAPTER: &str = "Imaging";

/// The name of the adapter of stream ends, below [`ADAPTER`].
pub const STREAM_ADAPTER: &str = "Streams";

/// The plain key of the store, and the name of the initial reference that leads to it.
pub const STORE_KEY: &str = "ImageStore";

/// The data folder, the limits and the bulk endpoints of an [`ImagingService`].
#[derive(Clone, Debug)]
pub struct ImagingOptions {
    /// The folder of the database and the images, which must exist.
    pub data: PathBuf,
    /// The bounds on images, files, regions and uploads.
    pub limits: Limits,
    /// The limits of transfers: their number, and the time without progress after which a viewer loses its connection.
    pub bulk: BulkLimits,
    /// The address at which bulk connections are accepted. Without one, clients use the socket or calls.
    pub tcp: Option<inet::Addr>,
    /// The address at which bulk connections over TLS are accepted, with their certificates: for clients whose requests come
    /// over TLS, which take no other bulk connections. Without one, these clients use calls.
    pub tls: Option<(inet::Addr, Ssliop)>,
    /// The host at which clients reach these addresses, if it is not the one that their requests have reached.
    pub host: Option<String>,
    /// The socket at which clients of the same user get open files.
    pub unix: Option<PathBuf>,
    /// The check of operations by the collections of images. Without it, each client may call all operations.
    pub path_check: Option<PathCheck>,
    /// The storage of the records, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl ImagingOptions {
    /// The defaults, with this data folder, and bulk connections at a port of the loopback interface.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            limits: Limits::default(),
            bulk: BulkLimits { offers: 256, offers_per_party: 128, ..BulkLimits::default() },
            tcp: Some(inet::Addr::loopback(0)),
            tls: None,
            host: None,
            unix: None,
            path_check: None,
            storage: None,
        }
    }
}

/// A failure to start or stop an [`ImagingService`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImagingError {
    /// The database or the folder of images cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address or a socket for bulk connections cannot be opened.
    #[error("cannot listen for bulk connections")]
    Listen(#[source] io::Error),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve the image store")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve the image store")]
    System(#[from] SystemException),
}

/// An image store that an ORB serves until [`stop`](Self::stop).
#[derive(Debug)]
pub struct ImagingService {
    catalog: Arc<Catalog>,
    bulk: Arc<BulkServer>,
    adapter: Poa,
    orb: Orb,
    store: ObjectRef,
    administration: Administration,
}

impl ImagingService {
    /// Opens the store in the folder of the options, or creates it, and serves it with the plain key [`STORE_KEY`]. What
    /// unfinished uploads have left is removed. An [`Administration`] makes copies of the database.
    ///
    /// # Errors
    /// A store that cannot be opened, endpoints in use, an ORB that cannot listen or has an image store already.
    pub fn start(orb: &Orb, options: ImagingOptions) -> Result<Self, ImagingError> {
        let ImagingOptions { data, limits, bulk, tcp, tls, host, unix, path_check, storage } = options;
        let storage = storage.unwrap_or_else(|| Storage::file(data.join(STORE_FILE)));
        let (catalog, next) = Catalog::open(storage, data.join(IMAGE_FOLDER), limits)?;
        let catalog = Arc::new(catalog);
        let policies = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::UserId.into()];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let streams = adapter.create_poa(STREAM_ADAPTER, Some(&adapter.the_poa_manager()), [])?;
        let mut server = BulkServer::builder(&streams).limits(BulkLimits { upload: limits.file, ..bulk });
        if let Some(addr) = tcp {
            server = server.tcp(addr);
        }
        if let Some((addr, ssliop)) = tls {
            server = server.tls(addr, &ssliop);
        }
        if let Some(host) = host {
            server = server.host(&host);
        }
        #[cfg(unix)]
        if let Some(path) = unix {
            server = server.unix(path);
        }
        #[cfg(not(unix))]
        drop(unix);
        let bulk = Arc::new(server.open().map_err(ImagingError::Listen)?);
        let servant = StoreSkeleton::new(ImageStore {
            catalog: Arc::clone(&catalog),
            bulk: Arc::clone(&bulk),
            examinations: Arc::new(Semaphore::new(limits.examinations.max(1))),
            path_check,
            next: AtomicU64::new(next),
        });
        let id = ObjectId::from(STORE_KEY);
        adapter.activate_object_with_id(&id, Arc::new(servant))?;
        let store = adapter.id_to_reference(&id)?;
        orb.set_object_key_alias(STORE_KEY, &store)?;
        let begin = {
            let catalog = Arc::clone(&catalog);
            move || catalog.begin_backup()
        };
        let administration = Administration::serve(orb, Service::Imaging, &data, begin)?;
        adapter.the_poa_manager().activate()?;
        Ok(Self { catalog, bulk, adapter, orb: orb.clone(), store, administration })
    }

    /// The image store, with the plain key [`STORE_KEY`].
    #[must_use]
    pub fn store(&self) -> &ObjectRef {
        &self.store
    }

    /// The number of images, and the octets of their files and of running uploads.
    #[must_use]
    pub fn totals(&self) -> (usize, u64) {
        self.catalog.totals()
    }

    /// The accepted and refused bulk connections since the start.
    #[must_use]
    pub fn bulk_statistics(&self) -> BulkStatistics {
        self.bulk.statistics()
    }

    /// Ends the service after its running requests. Transfers are cancelled.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), ImagingError> {
        drop(self.administration);
        self.orb.remove_object_key_alias(STORE_KEY);
        Ok(self.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}
