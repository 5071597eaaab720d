//! Helpers of the ORB's tests beside the test server.

use std::{
    fmt::Debug,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use socket2::{Domain, Socket, Type};
use spandrel::{
    CompletionStatus, Endpoint, OrbBuilder, SystemException, SystemExceptionKind,
    server::{DeferredCall, Replied, Servant, ServerCall},
    types::{IiopProfile, Interface},
};
use spandrel_cdr::TaggedProfile;
use spandrel_giop::{ids::TAG_LOCAL_ADDRESS, local_address::TAG_OMNIORB_UNIX_TRANS};

use crate::probe::Target;

pub use spandrel_test_support::{
    TEST_TIMEOUT, block_on, eventually, holds_within, in_background, is_ready, read_some, retry_interrupted,
    wait_until, waker_that,
};

/// The longest timeout that `retry_with_longer_timeout` tries.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs `attempt` with a short timeout, and with longer ones as long as it returns `None` because the timeout
/// was too short for the steps before it. The speed of the machine does not matter.
///
/// # Panics
/// If the longest timeout is too short.
#[track_caller]
pub fn retry_with_longer_timeout<T>(first: Duration, attempt: impl Fn(Duration) -> Option<T>) -> T {
    let mut time = first;
    loop {
        if let Some(result) = attempt(time) {
            return result;
        }
        assert!(time < LONGEST_TIMEOUT, "{time:?} is too short");
        time = (time * 4).min(LONGEST_TIMEOUT);
    }
}

/// The exception of a call whose timeout expires after its request was sent.
///
/// # Panics
/// If the call succeeds, or its request is never sent.
#[track_caller]
pub fn call_until_timeout<T: Debug>(
    target: &Target,
    call: impl Fn(Target) -> Result<T, SystemException>,
) -> SystemException {
    retry_with_longer_timeout(Duration::from_millis(50), |time| {
        let limited = Target::unchecked_narrow(&target.as_object().with_timeout(Some(time)));
        let error = call(limited).unwrap_err();
        let was_sent = kind_and_completion(&error) != (SystemExceptionKind::Timeout, CompletionStatus::No);
        was_sent.then_some(error)
    })
}

/// A servant of `Probe::Target` that handles each request with `dispatch`.
pub fn servant<F>(dispatch: F) -> impl Servant
where
    F: Fn(&str, ServerCall<'_>) -> Result<Replied, SystemException> + Send + Sync + 'static,
{
    struct Dispatching<F>(F);

    impl<F> Servant for Dispatching<F>
    where
        F: Fn(&str, ServerCall<'_>) -> Result<Replied, SystemException> + Send + Sync,
    {
        fn repository_id(&self) -> &str {
            Target::REPOSITORY_ID
        }

        fn is_a(&self, repository_id: &str) -> bool {
            repository_id == self.repository_id()
        }

        fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            (self.0)(operation, call)
        }
    }

    Dispatching(dispatch)
}

/// A servant that defers each request, and the receiver of its deferred calls.
pub fn deferring() -> (impl Servant, mpsc::Receiver<DeferredCall>) {
    let (send, deferred) = mpsc::channel();
    let send = Mutex::new(send);
    let servant = servant(move |_, call| {
        let (deferred, replied) = call.defer()?;
        send.lock().unwrap().send(deferred).unwrap();
        Ok(replied)
    });
    (servant, deferred)
}

/// A loopback port without a listener; it stays reserved while this value lives.
#[derive(Debug)]
pub struct ClosedPort(Socket);

impl ClosedPort {
    /// # Panics
    /// If no port can be reserved.
    #[must_use]
    pub fn reserve() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        Self(socket)
    }

    /// # Panics
    /// Never.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.local_addr().unwrap().as_socket().unwrap().port()
    }
}

/// A port of 127.0.0.1 that the system assigns to no other socket while this value lives, so that servers can
/// listen there one after the other.
#[derive(Debug)]
pub struct ReservedPort {
    pub port: u16,
    #[cfg(unix)]
    _socket: Socket,
}

impl ReservedPort {
    /// # Panics
    /// If no port can be reserved.
    #[must_use]
    pub fn reserve() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        // Listeners set SO_REUSEADDR too; the system does not assign such a port to another socket.
        #[cfg(unix)]
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        Self {
            port,
            #[cfg(unix)]
            _socket: socket,
        }
    }

    /// Adds an endpoint at this port.
    #[must_use]
    pub fn listening(&self, builder: OrbBuilder) -> OrbBuilder {
        builder.listen(Endpoint::new("127.0.0.1", self.port))
    }
}

/// Starts a fake server that hands each connection to `behave`; returns its port.
pub fn fake_server(mut behave: impl FnMut(usize, TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            behave(count, stream.unwrap());
        }
    });
    port
}

/// Reads one complete GIOP message.
pub fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message)?;
    let size: [u8; 4] = message[8..12].try_into().unwrap();
    let size = if message[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    message.resize(12 + size as usize, 0);
    stream.read_exact(&mut message[12..])?;
    Ok(message)
}

/// An exception's kind and completion status.
pub fn kind_and_completion(error: &SystemException) -> (SystemExceptionKind, CompletionStatus) {
    (error.kind(), error.completed())
}

/// The IIOP profile of a server's reference without its same-host components: where the address is changed,
/// clients must not use those.
pub fn without_local_addresses(profile: &TaggedProfile) -> IiopProfile {
    let mut profile = IiopProfile::decode(profile).unwrap().unwrap();
    profile
        .components
        .retain(|component| component.tag != TAG_LOCAL_ADDRESS && component.tag != TAG_OMNIORB_UNIX_TRANS);
    profile
}

/// A client that sends a request with `octets` octets of data, which the reply repeats, and reads nothing of
/// the reply.
pub fn client_that_never_reads(server: &crate::Server, octets: usize) -> TcpStream {
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let (order, version) = (0x01, [1, 2]);
    // A GIOP 1.2 Request in little-endian order, encoded by hand: id 1, response expected, target by object
    // key.
    let mut body = vec![1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    put_octets(&mut body, &profile.object_key);
    put_octets(&mut body, b"echo_octets\0");
    body.extend([0; 4]);
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    put_octets(&mut body, &vec![7; octets]);
    let mut message = [&b"GIOP"[..], &version, &[order, 0]].concat();
    message.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    message.extend(body);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(&message).unwrap();
    stream
}

/// Encodes a sequence of octets, aligned behind the 12-octet header.
fn put_octets(body: &mut Vec<u8>, octets: &[u8]) {
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(u32::try_from(octets.len()).unwrap().to_le_bytes());
    body.extend(octets);
}
