//! Rungs of the marshaling ladder over TCP: a server whose skeleton is a rung, with a client whose stub is the same rung
//! (paper 001, chapter 5) or with omniORB's (section 5.5).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Endpoint, Orb, Poa, SystemException, types::Interface as _};

use super::generated::ttcp::TtcpTwoway;
use super::orb::{OrbReceiver, Sink, builder};
use super::program::{OMNIORB, Program};
use super::{Job, Mechanism, Receiver, Transmitter, Work};
use crate::LabError;
use crate::call_times::CallTimes;
use crate::ladder::{Rung, RungReader, RungWriter};
use crate::workload::{CallKind, DataType, Flood, PingPong};

/// A rung as the receiver's skeleton.
#[derive(Debug)]
pub(super) struct RungMechanism {
    /// The engine that reads the requests' sequences.
    rung: Rung,
    /// The program of the client, which must be built; without one, a client writes by the same rung.
    client: Option<&'static Program>,
}

impl RungMechanism {
    /// The rung in place of stub and skeleton.
    pub(super) const fn both_sides(rung: Rung) -> Self {
        Self { rung, client: None }
    }

    /// The rung in place of the skeleton, for omniORB's client.
    pub(super) const fn of_omniorb(rung: Rung) -> Self {
        Self { rung, client: Some(&OMNIORB) }
    }
}

impl Mechanism for RungMechanism {
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
        let Work::Flood(_) = job.work else {
            let reason = "its client sends floods only".to_owned();
            return Err(LabError::Unavailable { mechanism: job.mechanism.name(), reason });
        };
        let orb = builder(&job.sockets).listen(Endpoint::new(host.to_string(), 0)).build();
        let orb = orb.map_err(LabError::call("make the ORB"))?;
        let received = Arc::new(Sink::default());
        let skeleton = RungSkeleton { reader: RungReader::new(self.rung), received: Arc::clone(&received) };
        let activate = || Poa::root(&orb)?.activate(skeleton);
        let reference = activate().map_err(LabError::call("activate the servant"))?;
        let endpoint = format!("{host} {}", orb.object_to_string(&reference));
        Ok(Box::new(OrbReceiver { endpoint, orb, received }))
    }

    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError> {
        if let Some(program) = self.client {
            return program.connect(endpoint, job);
        }
        // The endpoint of a program has the host before the reference.
        let reference = endpoint.rsplit(' ').next().unwrap_or_default();
        let orb = builder(&job.sockets).build().map_err(LabError::call("make the ORB"))?;
        let connect = || {
            let target = TtcpTwoway::unchecked_narrow(&orb.string_to_object(reference)?);
            target.start_timer()?;
            target.received()?;
            Ok(target)
        };
        let target = connect().map_err(LabError::call("reach the receiver's object"))?;
        Ok(Box::new(RungTransmitter { orb: orb.clone(), target, rung: self.rung }))
    }
}

/// The sending end: a rung as the stub.
struct RungTransmitter {
    orb: Orb,
    target: TtcpTwoway,
    rung: Rung,
}

impl Drop for RungTransmitter {
    fn drop(&mut self) {
        _ = self.orb.shutdown(); // closes the connection, so that the receiver need not wait
    }
}

impl Transmitter for RungTransmitter {
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError> {
        let mut writer = RungWriter::new(self.rung, flood.data, flood.elements());
        let (object, operation) = (self.target.as_object(), operation(flood.data, flood.call));
        let start = Instant::now();
        let mut send = || {
            let octets = writer.write();
            match flood.call {
                CallKind::OneWay => object.send_oneway(&operation, |out| {
                    out.octets(octets);
                    Ok(())
                }),
                CallKind::TwoWay => object.invoke(
                    &operation,
                    |out| {
                        out.octets(octets);
                        Ok(())
                    },
                    |_| Ok(()),
                ),
            }
        };
        let sent = (0..flood.buffers).try_for_each(|_| send());
        let sent =
            sent.and_then(|()| if flood.call == CallKind::OneWay { self.target.received().map(drop) } else { Ok(()) });
        sent.map_err(LabError::call("transmit"))?;
        Ok(start.elapsed())
    }

    fn ping_pong(&mut self, _work: &PingPong) -> Result<CallTimes, LabError> {
        Err(LabError::Settings("a rung of the ladder sends floods only".to_owned()))
    }
}

/// The operation that takes a sequence of this type.
fn operation(data: DataType, call: CallKind) -> String {
    let verb = if call == CallKind::OneWay { "send" } else { "call" };
    let (first, rest) = data.name().split_at(1);
    format!("{verb}{}{rest}Seq", first.to_ascii_uppercase())
}

/// The skeleton of `ttcp_twoway` by a rung.
#[derive(Debug)]
struct RungSkeleton {
    reader: RungReader,
    received: Arc<Sink>,
}

/// The type of the sequences of an operation, and whether it is one-way.
fn sequence(operation: &str) -> Option<(DataType, bool)> {
    let (words, is_one_way) = match operation.strip_prefix("send") {
        Some(rest) => (rest, true),
        None => (operation.strip_prefix("call")?, false),
    };
    let name = words.strip_suffix("Seq")?.to_ascii_lowercase();
    Some((name.parse().ok()?, is_one_way))
}

impl Servant for RungSkeleton {
    fn repository_id(&self) -> &'static str {
        "IDL:ttcp_twoway:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        matches!(repository_id, "IDL:ttcp_twoway:1.0" | "IDL:ttcp_sequence:1.0" | "IDL:omg.org/CORBA/Object:1.0")
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        if let Some((data, is_one_way)) = sequence(operation) {
            let octets = self
                .reader
                .read(data, call.arguments()?.rest())
                .map_err(|error| SystemException::marshal(0, CompletionStatus::No).with_detail(error.to_string()))?;
            self.received.count(octets);
            return if is_one_way { Ok(call.finish_oneway()) } else { call.reply(|_out| Ok(())) };
        }
        match operation {
            "start_timer" => {
                self.received.reset();
                Ok(call.finish_oneway())
            }
            "stop_timer" => Ok(call.finish_oneway()),
            "received" => {
                let octets = self.received.octets();
                call.reply(|out| {
                    out.u64(octets);
                    Ok(())
                })
            }
            _ => call.implicit(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_name_their_types() {
        for data in DataType::ALL {
            assert_eq!(sequence(&operation(data, CallKind::OneWay)), Some((data, true)));
            assert_eq!(sequence(&operation(data, CallKind::TwoWay)), Some((data, false)));
        }
        assert_eq!(sequence("sendStructSeq"), Some((DataType::Struct, true)));
        assert_eq!(sequence("callOctetSeq"), Some((DataType::Octet, false)));
        assert_eq!((sequence("start_timer"), sequence("sendSeq"), sequence("callFloatSeq")), (None, None, None));
    }
}
