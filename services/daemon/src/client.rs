//! The ORBs of executables that are clients of objects.

use std::sync::Arc;
use std::time::Duration;

use spandrel::Orb;
use spandrel::options::OrbArgs;
use spandrel::ssliop::Ssliop;

use crate::failure::Failure;

/// The longest time in which a server has to accept a connection, unless the options say another.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(30);

/// An ORB for calls with these options, and this time limit for connecting and for calls unless they set others.
///
/// # Errors
/// Wrong options; a file that cannot be read.
pub fn client_orb(args: &OrbArgs, timeout: Duration) -> Result<Orb, Failure> {
    let connecting = timeout.min(MAX_CONNECT_TIME);
    let builder = Orb::builder().connect_timeout(Some(connecting)).request_timeout(Some(timeout));
    let builder = builder.protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())));
    args.apply(builder).map_err(Failure::usage)?.build().map_err(Failure::failed)
}
