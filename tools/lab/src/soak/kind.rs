//! The kinds of calls, each with its expected answer.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use spandrel::{Orb, SystemException, SystemExceptionKind, types::IiopProfile};

use super::data;
use crate::future::block_on;
use crate::mechanism::generated::soak::soak::target::RefuseError;
use crate::mechanism::generated::soak::soak::{Refused, Target, Variant};
use crate::workload::named;

/// The time limit for one-ways to arrive.
const ARRIVAL: Duration = Duration::from_secs(20);
/// One-ways of one stream.
const NOTES: u32 = 20;

/// One kind of calls or connections that a soak run makes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Octets that the servant returns.
    Octets,
    /// Structs, echoed, with a union that the servant changes.
    Records,
    /// A value of any type, echoed.
    Any,
    /// A call that raises a user exception.
    UserException,
    /// A system exception of the servant.
    SystemException,
    /// One-ways, and a query of their effect.
    OneWay,
    /// Several futures at once.
    Asynchronous,
    /// A future that is dropped.
    Dropped,
    /// An object that is created, called and destroyed, and does not exist afterwards.
    Churn,
    /// A call during which the server calls back.
    CallBack,
    /// A LocateRequest without a call.
    Locate,
    /// An ORB, and with it a connection, for one call.
    NewConnection,
    /// A peer that closes inside a message.
    Vanishing,
}

named!(Kind, "kind of traffic");

impl Kind {
    /// All kinds in the order of reports.
    pub const ALL: [Self; 13] = [
        Self::Octets,
        Self::Records,
        Self::Any,
        Self::UserException,
        Self::SystemException,
        Self::OneWay,
        Self::Asynchronous,
        Self::Dropped,
        Self::Churn,
        Self::CallBack,
        Self::Locate,
        Self::NewConnection,
        Self::Vanishing,
    ];

    /// The name that tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Records => "records",
            Self::Any => "any",
            Self::UserException => "user-exception",
            Self::SystemException => "system-exception",
            Self::OneWay => "one-way",
            Self::Asynchronous => "asynchronous",
            Self::Dropped => "dropped",
            Self::Churn => "churn",
            Self::CallBack => "call-back",
            Self::Locate => "locate",
            Self::NewConnection => "new-connection",
            Self::Vanishing => "vanishing",
        }
    }

    /// A random kind: those that open connections more rarely, since the system keeps each port for a while.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        loop {
            let kind = Self::ALL[rng.usize(..Self::ALL.len())];
            if !matches!(kind, Self::NewConnection | Self::Vanishing) || rng.u8(..16) == 0 {
                return kind;
            }
        }
    }
}

/// A client of one thread.
pub(super) struct Client<'s> {
    pub(super) rng: Rng,
    pub(super) target: Target,
    /// An object of this client's ORB, to be called back.
    pub(super) own: Target,
    pub(super) reference: &'s str,
    pub(super) options: &'s [String],
    pub(super) max_octets: usize,
    /// Stream numbers of one-ways that no other client uses: this one and the following ones.
    pub(super) next_stream: u32,
}

/// The result of one piece of traffic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) calls: u64,
    /// Octets of user data that were compared.
    pub(super) octets: u64,
}

impl Done {
    fn new(calls: u64, octets: usize) -> Self {
        Self { calls, octets: octets as u64 }
    }
}

/// Checks that two values are equal.
fn same<T: PartialEq>(sent: &T, came: &T, what: &str) -> Result<(), String> {
    if sent == came { Ok(()) } else { Err(format!("{what} came back otherwise than sent")) }
}

fn text_of(exception: SystemException) -> String {
    exception.to_string()
}

impl Client<'_> {
    /// One piece of traffic of this kind.
    ///
    /// # Errors
    /// The violated expectation, as text.
    pub(super) fn make(&mut self, kind: Kind) -> Result<Done, String> {
        match kind {
            Kind::Octets => {
                let data = data::octets(&mut self.rng, self.max_octets);
                let back = self.target.echo_octets(&data).map_err(text_of)?;
                same(&data, &back, "octets").map(|()| Done::new(1, data.len()))
            }
            Kind::Records => self.records(),
            Kind::Any => {
                let value = data::any(&mut self.rng).map_err(|error| error.to_string())?;
                let back = self.target.echo_any(&value).map_err(text_of)?;
                same(&value, &back, "an any").map(|()| Done::new(1, 0))
            }
            Kind::UserException => {
                let refused = Refused { reason: data::text(&mut self.rng, 60), code: self.rng.u32(..) };
                match self.target.refuse(&refused.reason, refused.code) {
                    Err(RefuseError::Refused(came)) => same(&refused, &came, "an exception").map(|()| Done::new(1, 0)),
                    other => Err(format!("instead of the operation's exception: {other:?}")),
                }
            }
            Kind::SystemException => {
                let code = self.rng.u32(..);
                match self.target.fail(code) {
                    Err(came) if came.kind() == SystemExceptionKind::NoPermission && came.minor() == code => {
                        Ok(Done::new(1, 0))
                    }
                    other => Err(format!("instead of NO_PERMISSION: {other:?}")),
                }
            }
            Kind::OneWay => self.one_way(),
            Kind::Asynchronous => self.asynchronous(),
            Kind::Dropped => {
                let data = data::octets(&mut self.rng, 1000);
                drop(self.target.echo_octets_async(&data));
                Ok(Done::new(1, 0))
            }
            Kind::Churn => self.churn(),
            Kind::CallBack => {
                let data = data::octets(&mut self.rng, 10_000);
                let back = self.target.call_back(Some(&self.own), &data).map_err(text_of)?;
                same(&data, &back, "octets by call-back").map(|()| Done::new(2, data.len()))
            }
            Kind::Locate => self.target.as_object().locate().map_err(text_of).map(|_| Done::new(1, 0)),
            Kind::NewConnection => self.new_connection(),
            Kind::Vanishing => self.cut_connection().map_err(|error| format!("a connection to be cut: {error}")),
        }
    }

    fn records(&mut self) -> Result<Done, String> {
        let records = data::records(&mut self.rng, 400);
        let variant = data::variant(&mut self.rng);
        let mut other = variant.clone();
        let (back, count) = self.target.echo_records(&records, &mut other).map_err(text_of)?;
        if let Variant::Number { value, .. } = &mut other {
            *value = -*value;
        }
        same(&records, &back, "records")?;
        same(&variant, &other, "a union")?;
        same(&(records.len() as u32), &count, "a count")?;
        Ok(Done::new(1, size_of_val(&records[..])))
    }

    fn one_way(&mut self) -> Result<Done, String> {
        let stream = self.next_stream;
        self.next_stream += 1;
        let (mut octets, mut sum) = (0, 0);
        for _ in 0..NOTES {
            let data = data::octets(&mut self.rng, 4_000);
            self.target.note(stream, &data).map_err(text_of)?;
            (octets, sum) = (octets + data.len() as u64, sum + data::sum(&data));
        }
        // They may have used another connection than the query.
        let deadline = Instant::now() + ARRIVAL;
        loop {
            let noted = self.target.noted(stream, octets).map_err(text_of)?;
            if noted == (octets, sum) {
                return Ok(Done { calls: u64::from(NOTES) + 1, octets });
            }
            if noted.0 >= octets || Instant::now() > deadline {
                return Err(format!("one-ways brought {noted:?} instead of {:?}", (octets, sum)));
            }
            thread::yield_now();
        }
    }

    fn asynchronous(&mut self) -> Result<Done, String> {
        let data: Vec<_> = (0..8).map(|_| data::octets(&mut self.rng, 5_000)).collect();
        let futures: Vec<_> = data.iter().map(|data| self.target.echo_octets_async(data)).collect();
        let mut octets = 0;
        for (data, future) in data.iter().zip(futures) {
            let back = block_on(future).map_err(text_of)?;
            same(data, &back, "octets of a future")?;
            octets += data.len();
        }
        Ok(Done::new(8, octets))
    }

    fn churn(&mut self) -> Result<Done, String> {
        let another = self.target.another().map_err(text_of)?.ok_or("no other object")?;
        let data = data::octets(&mut self.rng, 100);
        let back = another.echo_octets(&data).map_err(text_of)?;
        same(&data, &back, "octets of a new object")?;
        another.leave().map_err(text_of)?;
        match another.echo_octets(&data) {
            Err(gone) if gone.kind() == SystemExceptionKind::ObjectNotExist => Ok(Done::new(4, data.len())),
            other => Err(format!("an object that has left answered {other:?}")),
        }
    }

    fn new_connection(&mut self) -> Result<Done, String> {
        let orb = super::orb(self.options).map_err(|error| error.to_string())?;
        let data = data::octets(&mut self.rng, self.max_octets);
        let call = |orb: &Orb| Target::unchecked_narrow(&orb.string_to_object(self.reference)?).echo_octets(&data);
        let back = call(&orb).map_err(text_of)?;
        orb.shutdown().map_err(text_of)?;
        same(&data, &back, "octets over a new connection").map(|()| Done::new(1, data.len()))
    }

    /// Opens a connection, sends part of a message, and closes.
    fn cut_connection(&mut self) -> std::io::Result<Done> {
        let mut stream = TcpStream::connect_timeout(&self.address()?, ARRIVAL)?;
        let mut message = *b"GIOP\x01\x02\x01\x00\x00\x10\x00\x00 some of what was announced";
        self.rng.fill(&mut message[12..]);
        let octets = self.rng.usize(..=message.len());
        stream.write_all(&message[..octets])?;
        Ok(Done::new(1, 0))
    }

    fn address(&self) -> std::io::Result<SocketAddr> {
        let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the reference has no address");
        let profiles = &self.target.as_object().ior().profiles;
        let profile =
            profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten()).ok_or_else(none)?;
        (profile.host, profile.port).to_socket_addrs()?.next().ok_or_else(none)
    }
}
