//! The object by which the other party controls a transfer.

use std::{io, time::Duration};

use spandrel_ipc::inet;
use spandrel_orb::SystemException;
use spandrel_sync::{Arc, Weak};

use crate::{
    bulk::{Chunk, Endpoints, Failed, FailedError, FailureCode, Part, Progress, StreamEndServant, Ticket, Token},
    channel::Channel,
    endpoint::Endpoint,
    error::Party,
    peer::{ChargedParty, PeerBinding, caller_ip},
    transfer::{Transfer, refused},
    wire,
};

/// The time for reaching the caller's endpoint.
const CONNECT: Duration = Duration::from_secs(3);

/// The offering side, as its stream ends use it.
pub(crate) trait Offering: Send + Sync {
    /// Replaces the token of a transfer.
    fn renew(&self, number: u64, transfer: &Transfer) -> Result<Ticket, Failed>;

    /// Runs a transfer over a connection that this side opens, in a thread of its own, and charges it to this party.
    fn call(
        self: Arc<Self>,
        transfer: Arc<Transfer>,
        party: ChargedParty,
        connect: &dyn Fn() -> io::Result<Channel>,
        token: wire::Token,
    ) -> Result<(), Failed>;
}

pub(crate) struct Servant {
    transfer: Arc<Transfer>,
    server: Weak<dyn Offering>,
    number: u64,
}

impl Servant {
    pub(crate) fn new(transfer: Arc<Transfer>, server: Weak<dyn Offering>, number: u64) -> Self {
        Self { transfer, server, number }
    }

    /// Whether the sender of the request is the party to which the offer was made. Calls from this process are.
    fn check_caller(&self) -> Result<(), Failed> {
        let is_foreign = PeerBinding::caller().is_some_and(|caller| !self.transfer.binding.is_caller(&caller));
        if is_foreign {
            return Err(refused(FailureCode::ForeignCaller, "the offer was made to another party"));
        }
        match self.transfer.has_expired() {
            true => Err(refused(FailureCode::Cancelled, "the offer has expired")),
            false => Ok(()),
        }
    }

    fn server(&self) -> Result<Arc<dyn Offering>, Failed> {
        self.server.upgrade().ok_or_else(|| refused(FailureCode::Cancelled, "the offering side has ended"))
    }

    /// Only the caller's own address is connected to: nobody makes this side connect to a third party.
    fn dial(&self, endpoints: &Endpoints, token: &Token) -> Result<(), Failed> {
        self.check_caller()?;
        if self.transfer.binding.is_secure {
            return Err(refused(FailureCode::Unreachable, "a party with TLS is not called in clear"));
        }
        let caller = caller_ip().ok_or_else(|| refused(FailureCode::Unreachable, "the caller has no IP address"))?;
        let own = endpoints.iter().filter_map(|text| match Endpoint::parse(text)? {
            Endpoint::Tcp(host, port) if host.parse().ok() == Some(caller) => inet::Addr::new(&host, port).ok(),
            _ => None,
        });
        let addresses: Vec<inet::Addr> = own.collect();
        if addresses.is_empty() {
            let text = format!("no endpoint is `tcp://` at the address of the caller, {caller}");
            return Err(refused(FailureCode::Unreachable, &text));
        }
        let connect = || {
            let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
            for address in &addresses {
                result = inet::Connector::connect_timeout(address, CONNECT).map(Channel::Tcp);
                if result.is_ok() {
                    break;
                }
            }
            result
        };
        let party = ChargedParty::at(caller);
        self.server()?.call(Arc::clone(&self.transfer), party, &connect, wire::Token(*token))
    }
}

impl StreamEndServant for Servant {
    fn state(&self) -> Result<Progress, SystemException> {
        Ok(self.transfer.progress())
    }

    fn renew(&self) -> Result<Ticket, FailedError> {
        self.check_caller()?;
        Ok(self.server()?.renew(self.number, &self.transfer)?)
    }

    fn dial(&self, at: &Endpoints, secret: &Token) -> Result<(), FailedError> {
        Ok(self.dial(at, secret)?)
    }

    fn read(&self, offset: u64, limit: u32) -> Result<Part, FailedError> {
        self.check_caller()?;
        Ok(self.transfer.read(offset, limit)?)
    }

    fn write(&self, offset: u64, data: &Chunk) -> Result<(), FailedError> {
        self.check_caller()?;
        Ok(self.transfer.write(offset, data)?)
    }

    fn finish(&self, length: u64, checksum: u32) -> Result<(), FailedError> {
        self.check_caller()?;
        Ok(self.transfer.finish(length, checksum)?)
    }

    fn cancel(&self, reason: &str) -> Result<(), SystemException> {
        if self.check_caller().is_ok() {
            self.transfer.cancel(Party::Peer, spandrel_error::excerpt(reason).to_string().as_str());
        }
        Ok(())
    }
}
