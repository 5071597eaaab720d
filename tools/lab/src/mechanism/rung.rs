//! A server whose skeleton is a rung of the marshaling ladder, and omniORB's client (paper 001, section 5.5).

use std::net::IpAddr;
use std::sync::Arc;

use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Endpoint, Poa, SystemException};

use super::orb::{OrbReceiver, Sink, builder};
use super::program::{OMNIORB, Program};
use super::{Job, Mechanism, Receiver, Transmitter, Work};
use crate::LabError;
use crate::ladder::RungReader;
use crate::workload::DataType;

/// A rung as the receiver's skeleton.
#[derive(Debug)]
pub(super) struct RungMechanism {
    /// Creates the reader of the requests' sequences.
    pub(super) reader: fn() -> RungReader,
    /// The program of the client, which must be built.
    pub(super) client: &'static Program,
}

/// The server reads by the engine before its first step.
pub(super) static ORIGINAL: RungMechanism = RungMechanism { reader: RungReader::original, client: &OMNIORB };
/// The server reads by the engine after its last step.
pub(super) static OPTIMISED: RungMechanism = RungMechanism { reader: RungReader::optimised, client: &OMNIORB };

impl Mechanism for RungMechanism {
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
        let Work::Flood(_) = job.work else {
            let reason = "its client sends floods only".to_owned();
            return Err(LabError::Unavailable { mechanism: job.mechanism.name(), reason });
        };
        let orb = builder(&job.sockets).listen(Endpoint::new(host.to_string(), 0)).build();
        let orb = orb.map_err(LabError::call("make the ORB"))?;
        let received = Arc::new(Sink::default());
        let skeleton = RungSkeleton { reader: (self.reader)(), received: Arc::clone(&received) };
        let activate = || Poa::root(&orb)?.activate(skeleton);
        let reference = activate().map_err(LabError::call("activate the servant"))?;
        let endpoint = format!("{host} {}", orb.object_to_string(&reference));
        Ok(Box::new(OrbReceiver { endpoint, orb, received }))
    }

    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError> {
        self.client.connect(endpoint, job)
    }
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
        assert_eq!(sequence("sendStructSeq"), Some((DataType::Struct, true)));
        assert_eq!(sequence("callOctetSeq"), Some((DataType::Octet, false)));
        assert_eq!((sequence("start_timer"), sequence("sendSeq"), sequence("callFloatSeq")), (None, None, None));
    }
}
